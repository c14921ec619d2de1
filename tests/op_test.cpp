// Every row of the op table on the device against the reference, and the table against the plugin.
#include "frontend/ops/ops.h"
#include "frontend/program/primitive.h"
#include "frontend/transforms/vjp.h"
#include "tests/gpu_class.h"
#include "tests/op_check.h"
#include "tests/samples.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

namespace ballast::tests {
namespace {

class OpTest : public testing::TestWithParam<OpCase> {};

void expect_reference(const OpCase& row) { EXPECT_EQ(disagreement(row), ""); }

TEST_P(OpTest, MatchesTheReference) { expect_reference(GetParam()); }

std::string case_name(const testing::TestParamInfo<OpCase>& info) {
  return info.param.op + "_" + std::to_string(info.index);
}

INSTANTIATE_TEST_SUITE_P(Table, OpTest, testing::ValuesIn(op_table()), case_name);

int64_t elements_of(const OpCase& row) {
  int64_t elements = 0;
  for (const HostArray& input : row.inputs) elements += input.type.elements();
  return elements;
}

bool has_empty_input(const OpCase& row) {
  return std::any_of(row.inputs.begin(), row.inputs.end(),
                     [](const HostArray& input) { return input.values.empty(); });
}

// Of every op with float operands: the first row, the largest, the largest of those with operands
// of unlike shapes, of those with most operands (a mask, a bias, a list) and with a NaN, and an
// empty one.
std::vector<OpCase> telling_rows() {
  std::map<std::string, std::vector<const OpCase*>> by_op;
  for (const OpCase& row : op_table()) {
    if (std::any_of(row.inputs.begin(), row.inputs.end(),
                    [](const HostArray& input) { return input.type.dtype == DType::kF32; })) {
      by_op[row.op].push_back(&row);
    }
  }
  std::vector<OpCase> telling;
  for (const auto& [op, rows] : by_op) {
    size_t most = 0;
    for (const OpCase* row : rows) most = std::max(most, row->inputs.size());
    std::set<const OpCase*> chosen = {rows.front()};
    const auto choose_largest = [&, &all = rows](const auto& is_wanted) {
      const OpCase* best = nullptr;
      for (const OpCase* row : all) {
        if (is_wanted(*row) && (!best || elements_of(*row) > elements_of(*best))) best = row;
      }
      if (best) chosen.insert(best);
    };
    choose_largest([](const OpCase&) { return true; });
    choose_largest([](const OpCase& row) {
      return std::any_of(row.inputs.begin(), row.inputs.end(), [&](const HostArray& input) {
        return input.type.shape != row.inputs[0].type.shape;
      });
    });
    choose_largest([&](const OpCase& row) { return row.inputs.size() == most; });
    choose_largest([](const OpCase& row) {
      return std::any_of(row.inputs.begin(), row.inputs.end(), [](const HostArray& input) {
        return !input.values.empty() && std::isnan(input.values[0]);
      });
    });
    choose_largest(has_empty_input);
    for (const OpCase* row : chosen) telling.push_back(*row);
  }
  return telling;
}

class NarrowOpTest : public testing::TestWithParam<DType> {};

void expect_narrow(const OpCase& row, DType dtype, bool stays_wide) {
  const std::optional<OpCase> narrow = narrowed(row, dtype, stays_wide);
  if (!narrow) return;
  SCOPED_TRACE(testing::PrintToString(*narrow));
  expect_reference(*narrow);
}

// Every op that takes f32 takes bf16 and f16: computed as f32, rounded once. What may stay f32
// beside them does so the second time.
TEST_P(NarrowOpTest, EveryFloatOpTakesIt) {
  for (const OpCase& row : telling_rows()) {
    for (bool stays_wide : {false, true}) expect_narrow(row, GetParam(), stays_wide);
  }
}

// An added mask stays f32: bf16 scores are too coarse for it.
TEST_P(NarrowOpTest, AttentionAddsF32Masks) {
  const std::map<std::string, size_t> masks = {{"scaled_dot_product_attention", 3},
                                               {"attention_grad", 6}};
  int rows = 0;
  for (const OpCase& row : op_table()) {
    const auto mask = masks.find(row.op);
    if (mask == masks.end() || row.inputs.size() <= mask->second) continue;
    if (row.inputs.back().type.dtype != DType::kF32) continue;
    expect_narrow(row, GetParam(), true);
    ++rows;
  }
  EXPECT_GE(rows, 16);
}

// Of the telling rows those of what is not pointwise, and not tiny: every kernel costs a second.
std::vector<OpCase> telling_rows_for_gpus() {
  std::vector<OpCase> rows = telling_rows();
  const auto is_left_out = [](const OpCase& row) {
    return is_pointwise(row) || (elements_of(row) < 36 && !has_empty_input(row));
  };
  rows.erase(std::remove_if(rows.begin(), rows.end(), is_left_out), rows.end());
  return rows;
}

// And for each other op its first row with elements; for planning one pointwise row for each number
// of operands: kernels/pointwise compares all of them in both classes.
std::vector<OpCase> rows_for_gpus() {
  std::vector<OpCase> rows = telling_rows_for_gpus();
  std::set<std::string> seen;
  for (const OpCase& row : rows) {
    if (!has_empty_input(row)) seen.insert(row.op);
  }
  for (const OpCase& row : op_table()) {
    if (has_empty_input(row)) continue;
    const std::string kind =
        is_pointwise(row) ? std::to_string(row.inputs.size()) + " operands" : row.op;
    if (seen.insert(kind).second) rows.push_back(row);
  }
  return rows;
}

using GpuOpTest = OnGpuClass<OpTest>;

TEST_P(GpuOpTest, MatchesTheReference) { expect_reference(GetParam()); }

INSTANTIATE_TEST_SUITE_P(Table, GpuOpTest, testing::ValuesIn(rows_for_gpus()), case_name);

using GpuNarrowOpTest = OnGpuClass<NarrowOpTest>;

TEST_P(GpuNarrowOpTest, EveryFloatOpTakesIt) {
  // These move narrow elements by kernels of their own, compared in both classes in kernels/.
  const std::set<std::string> moves = {"broadcast_to", "concat",   "flip",  "gather",
                                       "pad",          "slice",    "split", "gather_elements",
                                       "slice_grad",   "transpose"};
  for (const OpCase& row : telling_rows_for_gpus()) {
    if (moves.count(row.op) == 1) continue;
    for (bool stays_wide : {false, true}) expect_narrow(row, GetParam(), stays_wide);
  }
}

std::string type_name(const testing::TestParamInfo<DType>& info) { return name_of(info.param); }

INSTANTIATE_TEST_SUITE_P(Types, NarrowOpTest, testing::Values(DType::kBF16, DType::kF16),
                         type_name);
INSTANTIATE_TEST_SUITE_P(Types, GpuNarrowOpTest, testing::Values(DType::kBF16, DType::kF16),
                         type_name);

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
