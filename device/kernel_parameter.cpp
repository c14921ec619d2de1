#include "device/kernel_parameter.h"

#include "device/words.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace ballast::device {
namespace {

bool is_qualifier(std::string_view word) {
  constexpr std::array<std::string_view, 6> kQualifiers = {"const", "volatile", "global",
                                                           "local", "constant", "private"};
  return word.substr(0, 2) == "__" ||
         std::find(kQualifiers.begin(), kQualifiers.end(), word) != kQualifiers.end();
}

KernelParameter parse_parameter(const std::string& text) {
  KernelParameter parameter;
  parameter.text = text;
  const size_t star = text.find('*');
  parameter.is_pointer = star != std::string::npos;
  std::vector<std::string_view> words = words_of(text);
  if (!words.empty()) {
    parameter.name = words.back();
    words.pop_back();
  }
  for (const std::string_view word : words) {
    if (word == "local" || word == "__local") parameter.is_local = true;
    if (is_qualifier(word) || (parameter.is_pointer && word.data() > &text[star])) continue;
    parameter.type += (parameter.type.empty() ? "" : " ") + std::string(word);
  }
  return parameter;
}

}  // namespace

std::string_view kernel_name_before(std::string_view text, size_t parenthesis) {
  std::string_view words[3];  // from the last one on
  for (std::string_view& word : words) {
    word = last_word(text.substr(0, parenthesis));
    parenthesis = word.data() - text.data();
  }
  const bool is_kernel = words[1] == "void" && (words[2] == "kernel" || words[2] == "__kernel");
  return is_kernel ? words[0] : std::string_view();
}

std::vector<KernelParameter> parse_parameters(const std::string& list) {
  std::vector<KernelParameter> parameters;
  if (list.find_first_not_of(" \t\r\n") == std::string::npos) return parameters;
  for (size_t from = 0; from <= list.size();) {
    const size_t comma = std::min(list.find(',', from), list.size());
    parameters.push_back(parse_parameter(list.substr(from, comma - from)));
    from = comma + 1;
  }
  return parameters;
}

}  // namespace ballast::device
