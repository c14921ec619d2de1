// The name and the parameters of a kernel, from its text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ballast::device {

struct KernelParameter {
  std::string text;  // as it stands
  std::string type;  // without address space, `const` and `restrict`: "float", "int"
  std::string name;
  bool is_pointer = false;
  bool is_local = false;  // in local memory
};

// The name in "__kernel void name", where that and blanks stand before `parenthesis`; empty where
// another thing does.
std::string_view kernel_name_before(std::string_view text, size_t parenthesis);

// `list` stands between the parentheses.
std::vector<KernelParameter> parse_parameters(const std::string& list);

}  // namespace ballast::device
