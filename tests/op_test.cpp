// Every row of the op table on the device against the reference, and the table against the plugin.
#include "frontend/ops/ops.h"
#include "frontend/program/primitive.h"
#include "frontend/transforms/vjp.h"
#include "tests/op_table.h"
#include "tests/samples.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

namespace ballast::tests {
namespace {

class OpTest : public testing::TestWithParam<OpCase> {};

// `epsilon`: what one rounding to the element type adds to the tolerance, relatively.
void expect_reference(const OpCase& row, double epsilon = 0) {
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
    EXPECT_EQ(difference(to_array(outputs[i]), expected[i], row.rtol + epsilon,
                         row.atol + epsilon * 1e-3),
              "")
        << "output " << i;
  }
}

TEST_P(OpTest, MatchesTheReference) { expect_reference(GetParam()); }

std::string case_name(const testing::TestParamInfo<OpCase>& info) {
  return info.param.op + "_" + std::to_string(info.index);
}

INSTANTIATE_TEST_SUITE_P(Table, OpTest, testing::ValuesIn(op_table()), case_name);

struct NarrowType {
  DType dtype;
  double epsilon;
};

class NarrowOpTest : public testing::TestWithParam<NarrowType> {};

// Every op that takes f32 takes bf16 and f16: computed as f32, rounded once. The first samples of
// each op that have elements.
TEST_P(NarrowOpTest, EveryFloatOpTakesIt) {
  constexpr int kSamplesPerOp = 2;
  std::map<std::string, int> samples;
  for (OpCase row : op_table()) {
    bool has_floats = false, is_empty = false;
    for (HostArray& input : row.inputs) {
      is_empty = is_empty || input.values.empty();
      if (input.type.dtype != DType::kF32) continue;
      has_floats = true;
      input.type.dtype = GetParam().dtype;
      for (double& value : input.values) value = rounded(value, input.type.dtype);
    }
    if (!has_floats || is_empty || ++samples[row.op] > kSamplesPerOp) continue;
    SCOPED_TRACE(testing::PrintToString(row));
    expect_reference(row, GetParam().epsilon);
  }
}

INSTANTIATE_TEST_SUITE_P(Types, NarrowOpTest,
                         testing::Values(NarrowType{DType::kBF16, 0x1p-8},
                                         NarrowType{DType::kF16, 0x1p-11}),
                         [](const auto& type) { return std::string(name_of(type.param.dtype)); });

// The fused op against ordinary ops that store the scores; and masks with one column for all keys.
TEST(AttentionTest, EqualsItsComposition) {
  const Tensor q = to_tensor(real({2, 3, 20, 16}, -1, 1)),
               k = to_tensor(real({2, 3, 45, 16}, -1, 1));
  const Tensor v = to_tensor(real({2, 3, 45, 24}, -1, 1));
  HostArray some = boolean({20, 45});
  std::fill_n(some.values.begin() + 45, 45, 0.0);  // query 1 attends to nothing
  const std::vector<Tensor> masks = {Tensor(), to_tensor(some), to_tensor(boolean({3, 20, 1})),
                                     to_tensor(real({2, 1, 1, 45}, -1, 1)), Tensor::scalar(0.5f)};
  for (const Tensor& mask : masks) {
    for (bool causal : {false, true}) {
      const auto fused = ops::attention_with_lse(q, k, v, mask, causal, 0.4);
      const auto composed = ops::attention_composed(q, k, v, mask, causal, 0.4);
      EXPECT_EQ(difference(to_array(fused.out), to_array(composed.out), 1e-5, 1e-5), "");
      EXPECT_EQ(difference(to_array(fused.lse), to_array(composed.lse), 1e-5, 1e-5), "");
    }
  }
}

// A mask of some leading dimensions, of which others lie between.
TEST(AttentionTest, MaskRepeatsAlongScatteredDimensions) {
  const Tensor q = to_tensor(real({2, 2, 3, 4, 8}, -1, 1));
  const Tensor k = to_tensor(real({2, 2, 3, 5, 8}, -1, 1));
  for (const Shape& shape : {Shape{2, 1, 3, 1, 5}, Shape{2, 1, 1, 5}, Shape{1, 2, 1, 4, 1}}) {
    const Tensor mask = to_tensor(real(shape, -1, 1));
    const auto total = [&](const auto& attend) {
      return [&](Tensor m) { return ops::sum(ops::square(attend(q, k, k, m, false, 0.4).out)); };
    };
    const Tensor fused = ops::attention_with_lse(q, k, k, mask, false, 0.4).out;
    const Tensor composed = ops::attention_composed(q, k, k, mask, false, 0.4).out;
    EXPECT_EQ(difference(to_array(fused), to_array(composed), 1e-5, 1e-5), "");
    EXPECT_EQ(difference(to_array(grad(total(ops::attention_with_lse))(mask)),
                         to_array(grad(total(ops::attention_composed))(mask)), 1e-4, 1e-5),
              "");
  }
}

TEST(OpTableTest, CoversEveryOpOfThePlugin) {
  std::set<std::string> covered;
  for (const OpCase& row : op_table()) covered.insert(row.op);
  for (const std::string& name : plugin_ops()) {
    EXPECT_EQ(covered.count(name), 1u) << "op " << name << " is not in tests/op_table.cpp";
    EXPECT_NE(find_primitive(name), nullptr) << "op " << name << " is not in the primitive table";
  }
}

// As README.md says.
TEST(OpTableTest, AllButFiveOptimizerStepsHaveGradients) {
  const std::vector<std::string> all = plugin_ops();
  EXPECT_EQ(all.size(), 147u);
  std::set<std::string> without;
  for (const std::string& name : all) {
    const Primitive* row = find_primitive(name);
    if (row && !row->vjp) without.insert(name);
  }
  EXPECT_EQ(without,
            (std::set<std::string>{"apply_adagrad", "apply_adam", "apply_adam_weight_decay",
                                   "apply_adamw", "apply_rms_prop"}));
}

TEST(OpTableTest, EveryPrimitiveIsAnOpAnIdentityOrControlFlow) {
  std::vector<std::string> listed = plugin_ops();
  std::set<std::string> known(listed.begin(), listed.end());
  for (const std::string& name : primitive_names()) {
    const Primitive* row = find_primitive(name);
    EXPECT_TRUE(row->is_identity || row->run || known.count(name) == 1)
        << "primitive " << name << " is unknown to the plugin";
  }
}

}  // namespace
}  // namespace ballast::tests
