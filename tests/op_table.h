// Every primitive with sample calls and its reference in double precision, contributed family by
// family (tests/ops/<family>.cpp), and the rule of its results' types. op_test, gradient_test and
// the check that no op of the plugin is missing walk the table; drawn_problems draws more.
#pragma once

#include "tests/draw.h"
#include "tests/reference_ops.h"

#include <map>
#include <ostream>
#include <set>
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

struct OpFamilies {
  std::vector<OpCase> cases;
  std::map<std::string, ReferenceOp> references;
  std::map<std::string, TypeRule> types;  // without the identities of the frontend
  std::set<std::string> pointwise;
  std::set<std::string> open_zeros;  // of these, those whose zeros may have either sign
  // Float operands that may stay f32 where operand 0 is narrow.
  std::map<std::string, std::function<bool(size_t operand, size_t operands)>> wide_operands;

  OpCase& add(const std::string& op, std::vector<HostArray> inputs, Attrs attrs = {},
              bool is_smooth = false);
};

// A file of tests/ops: `add` fills the table; `draw` adds cases of extents drawn at random.
struct OpFamily {
  const char* name;
  void (*add)(OpFamilies& table);
  void (*draw)(OpFamilies& table, Draw& draw);
};

const std::vector<OpFamily>& op_family_list();
const OpFamilies& op_families();
const std::vector<OpCase>& op_table();

}  // namespace ballast::tests
