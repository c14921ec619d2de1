// What those who rewrite OpenCL source and programs of steps share.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ballast::kernels {

// Replaces parts of a text, from its beginning to its end: texts are long and parts many, so what
// follows a part moves once. The text is as it was until apply().
class Replacements {
 public:
  explicit Replacements(std::string& text) : text_(text) {}
  // [begin, end), not before the end of the last one.
  void replace(size_t begin, size_t end, std::string_view part) {
    result_.append(text_, done_, begin - done_).append(part);
    done_ = end;
  }
  void apply() {
    result_.append(text_, done_);
    text_ = std::move(result_);
  }

 private:
  std::string& text_;
  std::string result_;
  size_t done_ = 0;  // of the text, that the result has
};

inline void replace_all(std::string& text, std::string_view from, std::string_view to) {
  size_t at = text.find(from);
  if (at == std::string::npos) return;
  Replacements all(text);
  for (; at != std::string::npos; at = text.find(from, at + from.size())) {
    all.replace(at, at + from.size(), to);
  }
  all.apply();
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
