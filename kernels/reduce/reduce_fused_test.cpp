// Reductions with a chain in front, compiled at run time: the bits of the chain and then the
// reduction, and what double gives.
#include "kernels/reduce/reduce_reference.h"

#include <algorithm>
#include <set>

namespace ballast::kernels::testing {
namespace {

struct Case {
  Shape shape;
  std::vector<int64_t> axes;
};

// Rows and columns of a vector and more, in one launch and in chunks, one group of axes and
// several, neighbours that merge.
const std::vector<Case>& cases() {
  static const std::vector<Case> all = {{{16}, {0}},
                                        {{33}, {0}},
                                        {{200003}, {0}},
                                        {{64, 10}, {0, 1}},
                                        {{7, 16}, {0}},
                                        {{5, 33}, {1}},
                                        {{3, 70001}, {1}},
                                        {{7001, 30}, {0}},
                                        {{300, 300}, {0}},
                                        {{40, 1009}, {0}},
                                        {{4, 9, 32}, {1}},
                                        {{4, 9, 17}, {1}},
                                        {{4, 9, 17}, {0, 2}},
                                        {{4, 9, 7}, {0, 1, 2}},
                                        {{2, 3, 4, 25}, {1, 3}},
                                        {{4, 1, 70, 1}, {2}},
                                        {{1, 6, 1, 21}, {0, 1, 3}}};
  return all;
}

HostTensor of_dtype(const HostTensor& floats, DType dtype) {
  const TensorType type{dtype, floats.type.shape};
  return run_plan(plan_pointwise(DeviceClass::kCpu, "cast", {floats.type}, type), {floats}, type);
}

// The shapes of an input that broadcasts: one for all, and of every run of neighbouring axes.
std::vector<Shape> partial_shapes(const Shape& whole) {
  std::set<Shape> shapes = {{}};
  for (size_t begin = 0; begin < whole.size(); ++begin) {
    for (size_t end = begin + 1; end <= whole.size(); ++end) {
      Shape shape(whole.begin() + begin, whole.begin() + end);
      shape.resize(whole.size() - begin, 1);
      shapes.insert(shape);
    }
  }
  return {shapes.begin(), shapes.end()};
}

// (x - p)^2 + y, where y is bf16: inputs of every form, a step that is read twice.
FusedPointwise make_chain(const Shape& whole, const Shape& part) {
  const TensorType full{DType::kF32, whole};
  FusedPointwise chain;
  chain.inputs = {full, {DType::kF32, part}, {DType::kBF16, whole}};
  chain.steps = {{"sub", {input(0), input(1)}, full},
                 {"mul", {step(0), step(0)}, full},
                 {"cast", {input(2)}, full},
                 {"add", {step(1), step(2)}, full}};
  chain.outputs = {3};
  return chain;
}

std::vector<HostTensor> operands_of(const FusedPointwise& chain, float low, float high) {
  std::vector<HostTensor> operands;
  for (const TensorType& type : chain.inputs) {
    const HostTensor floats =
        random_f32(type.shape, static_cast<uint32_t>(operands.size()) + 5, low, high);
    operands.push_back(type.dtype == DType::kF32 ? floats : of_dtype(floats, type.dtype));
  }
  return operands;
}

// Chain, then reduction, each with a launch of its own.
std::vector<uint8_t> apart(DeviceClass device_class, const std::string& kind,
                           const FusedPointwise& chain, const std::vector<int64_t>& axes,
                           const std::vector<HostTensor>& operands, const TensorType& type) {
  const TensorType& whole = chain.steps.back().type;
  const HostTensor between = run_plan(plan_fused(device_class, chain), operands, whole);
  return run_plan(plan_reduce(device_class, kind, whole, axes, type), {between}, type).bytes;
}

void expect_equal(const std::string& kind, const FusedPointwise& chain,
                  const std::vector<int64_t>& axes, const std::vector<HostTensor>& operands) {
  const TensorType& whole = chain.steps.back().type;
  const TensorType type{whole.dtype, kept_shape(whole.shape, axes)};
  for (DeviceClass c : device_classes()) {
    const Plan plan = plan_fused_reduce(c, kind, chain, axes, type);
    EXPECT_EQ(run_plan(plan, operands, type).bytes, apart(c, kind, chain, axes, operands, type))
        << class_name(c) << " " << kind << " " << to_string(whole) << " over " << to_string(axes)
        << " with " << to_string(chain.inputs[1].shape);
  }
}

// One input of the chain broadcasts in all ways that fit.
TEST(FusedReduce, GivesTheBitsOfTheUnfused) {
  for (const auto& [shape, axes] : cases()) {
    if (is_too_large(2 * elements(shape))) continue;
    const bool is_small = elements(shape) < 1000;
    const std::vector<Shape> parts = is_small ? partial_shapes(shape) : std::vector<Shape>{{}};
    // A third of them, from one case to the next others.
    const size_t step = compiles_slowly() ? 3 : 1;
    for (size_t i = static_cast<size_t>(shape.back()) % step; i < parts.size(); i += step) {
      const Shape& part = parts[i];
      if (!is_fusable_before_reduction(part, shape, axes)) continue;
      const FusedPointwise chain = make_chain(shape, part);
      expect_equal("sum", chain, axes, operands_of(chain, -1, 1));
    }
  }
}

TEST(FusedReduce, AllKinds) {
  for (const char* kind : {"mean", "prod", "max", "min"}) {
    for (const auto& [shape, axes] : std::vector<Case>{{{37, 25}, {0}}, {{4, 9, 32}, {0, 2}}}) {
      const FusedPointwise chain = make_chain(shape, {});
      expect_equal(kind, chain, axes, operands_of(chain, -1, 1));
    }
  }
}

TEST(FusedReduce, MatchesDouble) {
  for (const auto& [shape, axes] : cases()) {
    if (is_too_large(2 * elements(shape))) continue;
    FusedPointwise chain = make_chain(shape, {});
    chain.steps.resize(2);
    chain.inputs.resize(2);
    chain.outputs = {1};
    const std::vector<HostTensor> operands = operands_of(chain, -1, 1);
    const double p = operands[1].as<float>()[0];
    const TensorType type{DType::kF32, kept_shape(shape, axes)};
    std::vector<double> squares;
    for (float x : operands[0].as<float>()) squares.push_back((x - p) * (x - p));
    const std::vector<double> want = reference("mean", shape, axes, squares);
    for (DeviceClass c : device_classes()) {
      const auto got =
          run_plan(plan_fused_reduce(c, "mean", chain, axes, type), operands, type).as<float>();
      for (size_t i = 0; i < got.size(); ++i) {
        EXPECT_NEAR(got[i], want[i], 1e-5 * std::max(1.0, want[i]))
            << class_name(c) << " " << to_string(shape) << " over " << to_string(axes);
      }
    }
  }
}

TEST(FusedReduce, OtherTypes) {
  for (const Shape& shape : {Shape{21, 37}, Shape{21, 16}}) {
    const TensorType f32{DType::kF32, shape}, i32{DType::kI32, shape}, i64{DType::kI64, shape},
        truth{DType::kBool, shape};
    FusedPointwise less;
    less.inputs = {f32, f32};
    less.steps = {{"less", {input(0), input(1)}, truth}};
    less.outputs = {0};
    FusedPointwise squares;
    squares.inputs = {i32, i32};
    squares.steps = {{"mul", {input(0), input(1)}, i32}, {"cast", {step(0)}, i64}};
    squares.outputs = {1};
    for (int64_t axis : {0, 1}) {
      for (const char* kind : {"any", "all"}) {
        expect_equal(kind, less, {axis}, operands_of(less, -1, 1));
      }
      for (const char* kind : {"sum", "max"}) {
        expect_equal(kind, squares, {axis}, operands_of(squares, -99, 99));
      }
    }
  }
}

TEST(FusedReduce, HandsOnNanAndInfinity) {
  const TensorType type{DType::kF32, {20, 16}};
  FusedPointwise chain;
  chain.inputs = {type, type};
  chain.steps = {{"mul", {input(0), input(1)}, type}};
  chain.outputs = {0};
  std::vector<float> x(320, 1.0f), y(320, 2.0f);
  x[0] = INFINITY, x[1] = INFINITY, y[1] = 0;  // inf, and inf * 0 = NaN
  for (const char* kind : {"max", "sum"}) {
    const TensorType result{DType::kF32, {16}};
    for (DeviceClass c : device_classes()) {
      const auto got = run_plan(plan_fused_reduce(c, kind, chain, {0}, result),
                                {f32({20, 16}, x), f32({20, 16}, y)}, result)
                           .as<float>();
      EXPECT_EQ(got[0], INFINITY);
      EXPECT_TRUE(std::isnan(got[1]));
      EXPECT_EQ(got[2], std::string(kind) == "max" ? 2 : 40);
    }
  }
}

TEST(FusedReduce, SaysWhatFits) {
  EXPECT_TRUE(is_fusable_before_reduction({4, 9, 17}, {4, 9, 17}, {1}));
  EXPECT_TRUE(is_fusable_before_reduction({9, 1}, {4, 9, 17}, {1}));
  EXPECT_FALSE(
      is_fusable_before_reduction({2, 1, 17}, {2, 3, 17}, {0, 1}));  // repeats within the axis
  EXPECT_FALSE(is_fusable_before_reduction({3, 1, 1}, {2, 3, 4, 25}, {3}));  // and before it
  EXPECT_FALSE(is_fusable_before_reduction({4, 9, 7}, {4, 9, 7}, {1}));      // less than a vector
  EXPECT_FALSE(is_fusable_before_reduction({64, 10}, {64, 10}, {1}));
  EXPECT_FALSE(is_fusable_before_reduction({40, 1}, {40, 1}, {1}));  // nothing to reduce
  EXPECT_FALSE(is_fusable_before_reduction({0, 30}, {0, 30}, {0}));
}

TEST(FusedReduce, RefusesWrongChains) {
  const auto message = [](const std::string& kind, const FusedPointwise& chain) -> std::string {
    try {
      plan_fused_reduce(DeviceClass::kCpu, kind, chain, {1}, {DType::kF32, {2}});
    } catch (const device::Error& error) {
      return error.what();
    }
    return "nothing was thrown";
  };
  FusedPointwise chain = make_chain({2, 30, 4}, {2, 1, 1});
  chain.outputs = {0};
  EXPECT_NE(message("sum", chain).find("not the last step"), std::string::npos);
  EXPECT_NE(
      message("sum", make_chain({2, 3, 4, 25}, {2, 1, 4, 1})).find("[2, 1, 4, 1] does not lie"),
      std::string::npos);
  EXPECT_NE(message("argmax", make_chain({2, 30}, {})).find("no argmax of f32"), std::string::npos);
}

TEST(FusedReduce, ShapesShareTheirKernels) {
  for (DeviceClass c : device_classes()) {
    const auto text = [&](const Shape& shape) {
      const TensorType type{DType::kF32, {shape[1]}};
      return plan_fused_reduce(c, "sum", make_chain(shape, {}), {0}, type).launches[0].source->text;
    };
    EXPECT_EQ(text({30, 70}), text({31, 90}));
  }
}

}  // namespace
}  // namespace ballast::kernels::testing
