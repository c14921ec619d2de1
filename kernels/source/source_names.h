// Names in Halide's OpenCL source that do not depend on what else the process compiled.
#pragma once

#include <string>
#include <string_view>

namespace ballast::kernels {

// Halide counts the values of all kernels that a process compiles ("_131"), and numbers a name that
// it has seen before ("out__12", the thirteenth "out"), so that the text of a kernel compiled at
// run time depends on those before it and no cache of programs would know it. Here values, and the
// numbers of each name, become 0 (left out after a name), 1, 2 and so on in their order.
void renumber_names(std::string& text);

// The name of the one kernel in the text; empty where there is none.
std::string kernel_name_in(std::string_view text);

}  // namespace ballast::kernels
