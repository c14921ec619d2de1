// The functions that kernels' arithmetic calls where the best way is a matter of the CPU's
// instructions, which the compiler of the OpenCL source knows and Halide does not, or a loop, which
// no expression of Halide's is.
#pragma once

#include <string>

namespace ballast::kernels {

// Adds the definitions of those that the text of a kernel calls, for the types it calls them for:
// "float16 x = ballast_scale(y, sum, whole);".
void define_functions(std::string& text);

}  // namespace ballast::kernels
