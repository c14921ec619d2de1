#include "device/kernel_parameter.h"

#include <algorithm>
#include <regex>

namespace ballast::device {
namespace {

std::string replace_all(const std::string& text, const char* pattern, const char* replacement) {
  return std::regex_replace(text, std::regex(pattern), replacement);
}

KernelParameter parse_parameter(const std::string& text) {
  KernelParameter parameter;
  parameter.text = text;
  parameter.is_pointer = text.find('*') != std::string::npos;
  std::smatch name;
  if (std::regex_search(text, name, std::regex(R"((\w+)\s*$)"))) parameter.name = name[1];
  std::string type =
      replace_all(text, R"(\b(?:const|volatile|__\w+|global|local|constant|private)\b)", " ");
  if (parameter.is_pointer) {
    type = type.substr(0, type.find('*'));
  } else {
    type = replace_all(type, R"(\b\w+\s*$)", "");  // the name
  }
  parameter.type = replace_all(replace_all(type, R"(^\s+|\s+$)", ""), R"(\s+)", " ");
  return parameter;
}

}  // namespace

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
