// How addresses are written in the text of a kernel that Halide wrote: see
// SourceRules::direct_access and direct_stack in halide_runtime.h.
#pragma once

#include <string>

namespace ballast::kernels {

// "base[sum]", where sum is x + y or such a one cast from int, as "(base + x)[y]", and "base + sum"
// of a vector likewise. What does not change in a loop then is a pointer, and what does is one
// index for all of its accesses. With `of_stack` an access "((type8 *)base)[index]" too, of which
// index is a sum less its unit, 8 elements; the number that is added, if one is, comes last. Where
// it is another multiple of the lanes, shifted, "((type8 *)(base + elements))[0]": LLVM then sees
// that vectors a constant apart are different ones, and keeps in registers what a loop adds to.
void split_places(std::string& text, bool of_stack);

}  // namespace ballast::kernels
