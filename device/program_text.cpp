#include "device/program_text.h"

#include "device/kernel_parameter.h"
#include "device/words.h"

#include <algorithm>

namespace ballast::device {
namespace {

constexpr const char* kBlanks = " \t\r\n";

bool starts_with(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

}  // namespace

// Clang lets a function of which it does not know that it has vectors of 512 bits do without: it
// makes two of 256 of each.
const CalledMacro kCalled = {
    "BALLAST_CALLED",
    "#if defined(__AVX512F__)\n"
    "#define BALLAST_CALLED __attribute__((noinline, min_vector_width(512)))\n"
    "#else\n"
    "#define BALLAST_CALLED __attribute__((noinline))\n"
    "#endif\n"};

std::string without_comments(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    const size_t slash = std::min(text.find('/', i), text.size());
    out.append(text, i, slash - i);
    i = slash;
    if (text.compare(i, 2, "//") == 0) {
      i = std::min(text.find('\n', i), text.size());
    } else if (text.compare(i, 2, "/*") == 0) {
      const size_t end = text.find("*/", i + 2);
      out += ' ';
      i = end == std::string::npos ? text.size() : end + 2;
    } else if (i < text.size()) {
      out += text[i++];
    }
  }
  return out;
}

std::vector<std::string> top_level_items(const std::string& text) {
  std::vector<std::string> items;
  size_t i = 0;
  while ((i = text.find_first_not_of(kBlanks, i)) != std::string::npos) {
    const size_t start = i;
    if (text[i] == '#') {
      do {
        i = text.find('\n', i + 1);
      } while (i != std::string::npos && text[i - 1] == '\\');
      if (i == std::string::npos) i = text.size();
    } else {
      int braces = 0;
      for (bool done = false; !done; ++i) {
        i = text.find_first_of("{};", i);
        if (i == std::string::npos) throw TextRefusal{"a source ends inside a declaration"};
        if (text[i] == '{') ++braces;
        if (text[i] == '}') --braces;
        if (braces > 0) continue;
        // An initializer's or a struct's '}' is followed by ';', which ends the piece.
        const size_t next = text.find_first_not_of(kBlanks, i + 1);
        const bool has_semicolon = next != std::string::npos && text[next] == ';';
        done = text[i] == ';' || !has_semicolon;
      }
    }
    items.push_back(text.substr(start, i - start));
  }
  return items;
}

bool is_kernel(std::string_view item) {
  return starts_with(item, "__kernel ") || starts_with(item, "kernel ");
}

std::string without_attributes(std::string text) {
  constexpr std::string_view kAttribute = "__attribute__";
  for (size_t at = 0; (at = text.find(kAttribute, at)) != std::string::npos;) {
    size_t end = at + kAttribute.size();
    for (int parentheses = 0; end < text.size();) {
      const char c = text[end++];
      if (c == '(') ++parentheses;
      if (c == ')' && --parentheses == 0) break;
    }
    text.erase(at, end - at);
  }
  return text;
}

KernelHead::KernelHead(const std::string& given) {
  const std::string text = without_attributes(given);
  const size_t open = std::min(text.find('('), text.size());
  const size_t close = std::min(text.find_first_of("()", open + 1), text.size());
  name = kernel_name_before(text, open);
  const bool is_whole = words_of(std::string_view(text).substr(0, open)).size() == 3 &&
                        close + 1 == end_before_blanks(text);
  const bool is_known = !name.empty() && is_whole && text[close] == ')';
  if (!is_known) throw TextRefusal{"a kernel's head is not \"__kernel void name(parameters)\""};
  parameters = text.substr(open + 1, close - open - 1);
}

std::optional<char> constant_dimension(std::string_view text, size_t* end) {
  size_t i = *end;
  const auto next = [&] {
    return (i = text.find_first_not_of(kBlanks, i)) < text.size() ? text[i++] : '\0';
  };
  const bool is_opened = next() == '(';
  const char dimension = next();
  if (!is_opened || dimension < '0' || dimension > '2' || next() != ')') return std::nullopt;
  *end = i;
  return dimension;
}

bool is_barrier(std::string_view word) {
  return starts_with(word, "barrier") || starts_with(word, "work_group_") ||
         starts_with(word, "async_work_group_");
}

}  // namespace ballast::device
