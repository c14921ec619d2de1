// What those who rewrite OpenCL source share.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace ballast::kernels {

inline void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
}

using Lines = std::vector<std::string>;

inline Lines lines_of(const std::string& text) {
  Lines lines;
  for (size_t begin = 0, end; begin < text.size(); begin = end + 1) {
    end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
  }
  return lines;
}

inline std::string text_of(const Lines& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + '\n';
  return text;
}

// The line of `at`, "type name = ...".
struct Declared {
  std::string type, name;
};

inline Declared declared_at(const std::string& text, size_t at) {
  const size_t type = text.find_first_not_of(' ', text.rfind('\n', at) + 1);
  const size_t name = text.find(' ', type) + 1;
  return {text.substr(type, name - 1 - type), text.substr(name, text.find(' ', name) - name)};
}

}  // namespace ballast::kernels
