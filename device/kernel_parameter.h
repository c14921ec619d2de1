// The parameters of a kernel, from its text: what stitching and packing read of it.
#pragma once

#include <string>
#include <vector>

namespace ballast::device {

struct KernelParameter {
  std::string text;  // as it stands
  std::string type;  // without address space, `const` and `restrict`: "float", "int"
  std::string name;
  bool is_pointer = false;
  bool is_local = false;  // in local memory
};

// `list` stands between the parentheses.
std::vector<KernelParameter> parse_parameters(const std::string& list);

}  // namespace ballast::device
