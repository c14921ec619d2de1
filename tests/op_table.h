// Every primitive with sample calls. Three programs walk it: op_test, gradient_test, and the check
// that no op of the plugin is missing.
#pragma once

#include "tests/reference.h"

#include <ostream>
#include <string>
#include <vector>

namespace ballast::tests {

struct OpCase {
  std::string op;
  std::vector<HostArray> inputs;
  Attrs attrs;
  // Where the op is smooth: its gradients can be compared with finite differences.
  bool is_smooth = false;
  double rtol = 1e-5;
  double atol = 1e-6;
};

std::ostream& operator<<(std::ostream& out, const OpCase& op_case);

const std::vector<OpCase>& op_table();

}  // namespace ballast::tests
