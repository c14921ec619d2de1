// What hints.h says of a GPU's work-items and their registers, done to the text of a kernel that
// Halide wrote.
#pragma once

#include <string>

namespace ballast::kernels {

// Arrays named by of_item: "float sums_of_item_64[16384];", with room for a work-group, becomes one
// of 64, and "sums_of_item_64[index]" the item's own element.
void keep_items_apart(std::string& text);

// What is named by fetched_ahead is computed before its loop for the first iteration, and in each
// for the next one: after the last barrier, so that it need not be there before the next.
void fetch_ahead(std::string& text);

}  // namespace ballast::kernels
