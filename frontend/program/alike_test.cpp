#include "frontend/program/alike.h"

#include "frontend/control_flow/control_flow.h"
#include "frontend/ops/ops.h"
#include "frontend/transforms/vjp.h"

#include <gtest/gtest.h>

namespace ballast {
namespace {

// One function with a few knobs, all at one line of the source.
struct Knobs {
  double number = 2;
  int64_t axis = 0;
  bool uses_tanh = true, assigns = true, swaps = false;
  Parameter weight, other;
  TensorType type{DType::kF32, {2, 3}};
  Tensor captured = Tensor::ones({2, 3});
};

Program made(const Knobs& knobs) {
  return trace(
      [&](const std::vector<Tensor>& in) {
        Tensor x = knobs.uses_tanh ? ops::tanh(in[0]) : ops::exp(in[0]);
        Tensor y = x * knobs.weight * knobs.number + knobs.captured;
        if (knobs.assigns) knobs.other.assign(y);
        Tensor z = cond(
            ops::greater(ops::sum(y), 0.0f), [&](const Tensor& v) { return v * knobs.number; },
            [](const Tensor& v) { return v; }, y);
        Tensor sum = ops::sum(knobs.swaps ? z - x : x - z, {knobs.axis});
        return std::vector<Tensor>{sum};
      },
      {knobs.type});
}

class AlikeTest : public ::testing::Test {
 protected:
  static Parameter parameter(const char* name) { return {Tensor::zeros({2, 3}), name}; }

  bool is_alike_with(const Knobs& changed) const { return are_alike(made(knobs_), made(changed)); }

  Knobs knobs_ = [] {
    Knobs knobs;
    knobs.weight = parameter("w");
    knobs.other = parameter("o");
    return knobs;
  }();
};

TEST_F(AlikeTest, TracedTwice) { EXPECT_TRUE(is_alike_with(knobs_)); }

TEST_F(AlikeTest, OtherCapturedValues) {
  Knobs changed = knobs_;
  changed.captured = Tensor::zeros({2, 3});
  EXPECT_TRUE(is_alike_with(changed));
  changed.captured = Tensor::zeros({3});
  EXPECT_FALSE(is_alike_with(changed));
}

TEST_F(AlikeTest, AnyDifferenceCounts) {
  const std::pair<const char*, void (*)(Knobs&)> changes[] = {
      {"a number", [](Knobs& k) { k.number = 3; }},
      {"an attribute", [](Knobs& k) { k.axis = 1; }},
      {"a primitive", [](Knobs& k) { k.uses_tanh = false; }},
      {"an effect", [](Knobs& k) { k.assigns = false; }},
      {"the order of operands", [](Knobs& k) { k.swaps = true; }},
      {"a parameter read", [](Knobs& k) { k.weight = parameter("w"); }},
      {"a parameter assigned", [](Knobs& k) { k.other = parameter("o"); }},
  };
  for (const auto& [what, change] : changes) {
    Knobs changed = knobs_;
    change(changed);
    EXPECT_FALSE(is_alike_with(changed)) << what;
  }
}

TEST_F(AlikeTest, TypesOfInputsCount) {
  const auto identity = [](const std::vector<Tensor>& in) { return in; };
  const Program floats = trace(identity, {{DType::kF32, {3}}});
  EXPECT_TRUE(are_alike(floats, trace(identity, {{DType::kF32, {3}}})));
  EXPECT_FALSE(are_alike(floats, trace(identity, {{DType::kF32, {4}}})));
  EXPECT_FALSE(are_alike(floats, trace(identity, {{DType::kI32, {3}}})));
  EXPECT_FALSE(are_alike(floats, trace(identity, {{DType::kF32, {3}}, {DType::kF32, {3}}})));
}

TEST_F(AlikeTest, LinesCount) {
  const TensorType type{DType::kF32, {3}};
  const auto here = [](const std::vector<Tensor>& in) {
    return std::vector<Tensor>{ops::exp(in[0])};
  };
  const auto there = [](const std::vector<Tensor>& in) {
    return std::vector<Tensor>{ops::exp(in[0])};
  };
  EXPECT_FALSE(are_alike(trace(here, {type}), trace(there, {type})));
}

TEST_F(AlikeTest, BodiesCount) {
  double in_body = 2;
  const auto fn = [&](const std::vector<Tensor>& in) {
    return std::vector<Tensor>{cond(
        ops::greater(ops::sum(in[0]), 0.0f), [&](const Tensor& v) { return v * in_body; },
        [](const Tensor& v) { return v; }, in[0])};
  };
  const TensorType type{DType::kF32, {3}};
  const Program before = trace(fn, {type});
  EXPECT_TRUE(are_alike(before, trace(fn, {type})));
  in_body = 3;
  EXPECT_FALSE(are_alike(before, trace(fn, {type})));
}

}  // namespace
}  // namespace ballast
