// Every row of the op table on the device against the reference, and the table against the plugin.
#include "frontend/ops.h"
#include "frontend/primitive.h"
#include "tests/op_table.h"

#include <gtest/gtest.h>

#include <set>
#include <sstream>

namespace ballast::tests {
namespace {

class OpTest : public testing::TestWithParam<OpCase> {};

TEST_P(OpTest, MatchesTheReference) {
  const OpCase& row = GetParam();
  std::vector<Tensor> inputs;
  std::vector<TensorType> types;
  for (const HostArray& input : row.inputs) {
    inputs.push_back(to_tensor(input));
    types.push_back(input.type);
  }
  std::vector<HostArray> expected =
      reference_op(row.op, row.inputs, row.attrs, infer(row.op, types, row.attrs));
  std::vector<Tensor> outputs = ops::call(row.op, inputs, row.attrs);
  ASSERT_EQ(outputs.size(), expected.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    EXPECT_EQ(difference(to_array(outputs[i]), expected[i], row.rtol, row.atol), "")
        << "output " << i;
  }
}

std::string case_name(const testing::TestParamInfo<OpCase>& info) {
  return info.param.op + "_" + std::to_string(info.index);
}

INSTANTIATE_TEST_SUITE_P(Table, OpTest, testing::ValuesIn(op_table()), case_name);

TEST(OpTableTest, CoversEveryOpOfThePlugin) {
  std::set<std::string> covered;
  for (const OpCase& row : op_table()) covered.insert(row.op);
  for (const std::string& name : plugin_ops()) {
    EXPECT_EQ(covered.count(name), 1u) << "op " << name << " is not in tests/op_table.cpp";
    EXPECT_NE(find_primitive(name), nullptr) << "op " << name << " is not in the primitive table";
  }
}

TEST(OpTableTest, EveryPrimitiveIsAnOpOrAnIdentity) {
  std::vector<std::string> listed = plugin_ops();
  std::set<std::string> known(listed.begin(), listed.end());
  for (const std::string& name : primitive_names()) {
    EXPECT_TRUE(find_primitive(name)->is_identity || known.count(name) == 1)
        << "primitive " << name << " is unknown to the plugin";
  }
}

}  // namespace
}  // namespace ballast::tests
