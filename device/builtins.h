// Declarations of the functions of OpenCL C that a program calls.
//
// PoCL has clang read a header of 18,000 lines for every program, twice: 250 ms of the 280 that a
// small one takes. With these declarations in front and kWithoutHeader among the options, that
// header is left out. A program that calls anything else does not compile so; it is then built with
// the header.
#pragma once

#include <optional>
#include <string>

namespace ballast::device {

inline constexpr const char* kWithoutHeader = " -D_OPENCL_H_";  // the header's guard

// Nothing for a text with halves, which these declarations leave out: a half would silently become
// a float.
std::optional<std::string> declare_builtins(const std::string& text);

}  // namespace ballast::device
