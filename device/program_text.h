// The top level of a program's text: preprocessor lines, declarations, functions and kernels, and a
// kernel's head. Whatever is not understood is refused with a reason.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ballast::device {

struct TextRefusal {
  std::string why;
};

// Comments become one space, so that braces and names in them mean nothing.
std::string without_comments(const std::string& text);

// Top-level pieces in order: preprocessor lines, and declarations or definitions up to their last
// ';' or '}'. `text` has no comments. Throws TextRefusal.
std::vector<std::string> top_level_items(const std::string& text);

bool is_kernel(std::string_view item);

std::string without_attributes(std::string text);

// "__kernel void name(parameters)", which may have attributes. Throws TextRefusal.
struct KernelHead {
  explicit KernelHead(const std::string& text);
  std::string name, parameters;
};

// The digit of the "(0)", "(1)" or "(2)" at *end, which it skips; nothing where another thing is.
std::optional<char> constant_dimension(std::string_view text, size_t* end);

// Whether a kernel whose text has this word waits for other work-items.
bool is_barrier(std::string_view word);

// What stands before a function that is to be called, not inlined, and the line that defines it.
struct CalledMacro {
  const char *name, *definition;
};
extern const CalledMacro kCalled;

}  // namespace ballast::device
