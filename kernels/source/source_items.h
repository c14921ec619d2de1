// What hints.h says of a GPU's work-items and their registers, done to the text of a kernel that
// Halide wrote.
#pragma once

#include <string>

namespace ballast::kernels {

// Arrays named by of_item: "float sums_of_item_64[16384];", with room for a work-group, becomes one
// of 64, and "sums_of_item_64[index]" the item's own element.
void keep_items_apart(std::string& text);

// What is named by fetched_ahead is computed before its loop for the first iteration, and in each
// for the next one, before what takes time; in the last for itself again. Of what is named by
// in_turns, the loop's last barrier is left out.
void fetch_ahead(std::string& text);

// "int a = x * 4; int b = a + 12; int c = b >> 2;", where a vector of 4 lies, becomes
// "int c = x + 3;": compilers keep the shifts, an instruction or two for each vector.
void shorten_vector_places(std::string& text);

// What in_registers says, as a pragma that the device layer knows (device/program_cache.cpp).
void ask_for_registers(std::string& text);

}  // namespace ballast::kernels
