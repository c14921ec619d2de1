#include "kernels/test_support.h"

#include <limits>
#include <thread>

namespace ballast::kernels::testing {
namespace {

using Ref = FusedStep::Ref;

// The same steps one kernel at a time.
std::vector<HostTensor> run_separately(DeviceClass c, const FusedPointwise& fused,
                                       const std::vector<HostTensor>& inputs) {
  std::vector<HostTensor> results;
  for (const FusedStep& s : fused.steps) {
    std::vector<HostTensor> args;
    std::vector<TensorType> types;
    for (const Ref& ref : s.args) {
      args.push_back(ref.is_input ? inputs[ref.index] : results[ref.index]);
      types.push_back(args.back().type);
    }
    results.push_back(run_plan(plan_pointwise(c, s.op, types, s.type), args, s.type));
  }
  std::vector<HostTensor> outputs;
  for (uint32_t output : fused.outputs) outputs.push_back(results[output]);
  return outputs;
}

void expect_same_bits(const FusedPointwise& fused, const std::vector<HostTensor>& inputs) {
  std::vector<TensorType> types;
  for (uint32_t output : fused.outputs) types.push_back(fused.steps[output].type);
  for (DeviceClass c : device_classes()) {
    const Plan plan = plan_fused(c, fused);
    EXPECT_EQ(plan.launches.size(), 1);
    const auto together = run_plan(plan, inputs, types);
    const auto apart = run_separately(c, fused, inputs);
    for (size_t i = 0; i < types.size(); ++i) {
      EXPECT_EQ(together[i].bytes, apart[i].bytes) << class_name(c) << " output " << i;
    }
  }
}

std::vector<HostTensor> tensors(const FusedPointwise& fused) {
  std::vector<HostTensor> inputs;
  for (const TensorType& type : fused.inputs) {
    inputs.push_back(random_f32(type.shape, static_cast<uint32_t>(inputs.size()) + 11));
    if (type.dtype == DType::kF32) continue;
    const Plan plan = plan_pointwise(DeviceClass::kCpu, "cast", {inputs.back().type}, type);
    inputs.back() = run_plan(plan, {inputs.back()}, type);
  }
  return inputs;
}

// What a compiler would like to rewrite: a b + c as one rounding, (x - x), division by a constant,
// cancelling sums, and the functions with polynomials inside.
FusedPointwise rounding_chain(const Shape& shape, const Shape& row, DType dtype = DType::kF32) {
  const TensorType full{dtype, shape}, part{dtype, row}, one{dtype, {}};
  FusedPointwise fused;
  fused.inputs = {full, part, one};
  fused.steps = {
      {"mul", {input(0), input(1)}, full},
      {"add", {step(0), input(2)}, full},
      {"sub", {step(1), step(0)}, full},
      {"tanh", {step(2)}, full},
      {"exp", {step(3)}, full},
      {"div", {step(4), input(2)}, full},
      {"sigmoid", {step(5)}, full},
      {"mul", {step(6), step(6)}, full},
      {"sub", {step(7), step(7)}, full},
      {"add", {step(8), step(5)}, full},
      {"relu", {step(9)}, full},
      {"abs", {input(0)}, full},
      {"log", {step(11)}, full},
      {"maximum", {step(12), step(10)}, full},
  };
  fused.outputs = {13, 7};
  return fused;
}

TEST(Fused, EqualsSeparateKernelsBitForBit) {
  for (const auto& [shape, row] : std::vector<std::pair<Shape, Shape>>{{{64}, {64}},
                                                                       {{5, 32}, {32}},
                                                                       {{5, 33}, {33}},
                                                                       {{1000}, {1}},
                                                                       {{4111}, {4111}},
                                                                       {{33, 131}, {131}},
                                                                       {{33, 131}, {33, 1}},
                                                                       {{3, 1, 16}, {3, 1, 1}}}) {
    const FusedPointwise fused = rounding_chain(shape, row);
    expect_same_bits(fused, tensors(fused));
  }
}

// Every step rounds to its type.
TEST(Fused, NarrowTypes) {
  for (DType dtype : {DType::kBF16, DType::kF16}) {
    for (const Shape& shape : {Shape{5, 32}, Shape{3, 7}}) {
      const FusedPointwise fused = rounding_chain(shape, {shape[1]}, dtype);
      expect_same_bits(fused, tensors(fused));
    }
  }
}

TEST(Fused, BoolAndIntegerSteps) {
  const Shape shape = {6, 16};
  const TensorType f{DType::kF32, shape}, b{DType::kBool, shape}, i{DType::kI32, shape};
  FusedPointwise fused;
  fused.inputs = {f, f};
  fused.steps = {
      {"less", {input(0), input(1)}, b},
      {"greater_equal", {input(0), input(1)}, b},
      {"logical_not", {step(0)}, b},
      {"logical_and", {step(1), step(2)}, b},
      {"select", {step(3), input(0), input(1)}, f},
      {"cast", {step(4)}, i},
      {"mul", {step(5), step(5)}, i},
      {"cast", {step(3)}, f},
  };
  fused.outputs = {3, 6, 7, 4};
  auto inputs = tensors(fused);
  auto values = inputs[0].as<float>();
  values[3] = std::nanf("");
  inputs[0] = f32(shape, values);
  expect_same_bits(fused, inputs);
}

// A step may overflow: x < x + y says nothing about y.
TEST(Fused, IntegersWrapInEveryStep) {
  for (DType dtype : {DType::kI32, DType::kI64}) {
    const TensorType n{dtype, {16}}, b{DType::kBool, {16}};
    FusedPointwise fused;
    fused.inputs = {n, n};
    fused.steps = {
        {"add", {input(0), input(1)}, n},   {"less", {input(0), step(0)}, b},
        {"sub", {input(1), input(0)}, n},   {"less", {step(2), input(1)}, b},
        {"square", {input(0)}, n},          {"mul", {step(4), input(1)}, n},
        {"greater", {step(5), step(4)}, b}, {"neg", {input(0)}, n},
        {"less", {step(7), input(0)}, b},
    };
    fused.outputs = {1, 3, 6, 8};
    const auto filled = [&](auto most) {
      using T = decltype(most);
      std::vector<T> x(16, most), y(16, T{1});
      x[1] = std::numeric_limits<T>::min();
      y[2] = -1;
      return std::vector<HostTensor>{{dtype, n.shape, x}, {dtype, n.shape, y}};
    };
    const auto inputs = dtype == DType::kI32 ? filled(std::numeric_limits<int32_t>::max())
                                             : filled(std::numeric_limits<int64_t>::max());
    expect_same_bits(fused, inputs);
    for (DeviceClass c : device_classes()) {
      const auto less = run_plan(plan_fused(c, fused), inputs, {b, b, b, b})[0].as<uint8_t>();
      EXPECT_EQ(less[0], 0) << class_name(c);  // the largest and 1
      EXPECT_EQ(less[1], 1) << class_name(c);
    }
  }
}

// A step's result used twice, thirty times over: code must not double with every step.
TEST(Fused, SharedStepsStaySmall) {
  const TensorType type{DType::kF32, {32}};
  FusedPointwise fused;
  fused.inputs = {type};
  fused.steps = {{"tanh", {input(0)}, type}};
  for (uint32_t i = 0; i < 30; ++i) {
    fused.steps.push_back({i % 2 ? "add" : "mul", {step(i), step(i)}, type});
  }
  fused.outputs = {30};
  EXPECT_LT(plan_fused(DeviceClass::kCpu, fused).launches[0].source->text.size(), 20000u);
  expect_same_bits(fused, tensors(fused));
}

TEST(Fused, RunsInPlace) {
  for (int64_t n : {1024, 4111}) {
    const FusedPointwise fused = rounding_chain({n}, {n});
    const auto inputs = tensors(fused);
    const TensorType type = fused.inputs[0];
    for (DeviceClass c : device_classes()) {
      const Plan plan = plan_fused(c, fused);
      const auto apart = run_plan(plan, inputs, {type, type});
      const auto in_place = run_plan(plan, inputs, {type, type}, {0, 1});
      EXPECT_EQ(apart[0].bytes, in_place[0].bytes);
      EXPECT_EQ(apart[1].bytes, in_place[1].bytes);
    }
  }
}

TEST(Fused, ManyThreadsGetEqualPlans) {
  std::vector<Plan> plans(4);
  std::vector<std::thread> threads;
  for (Plan& plan : plans) {
    threads.emplace_back([&plan] {
      plan = plan_fused(DeviceClass::kCpu, rounding_chain({7, 48}, {48}));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Plan& plan : plans) EXPECT_TRUE(same_launches(plan, plans[0]));
}

TEST(Fused, RefusesWrongChains) {
  const TensorType f{DType::kF32, {3}}, i{DType::kI32, {3}};
  const auto plan = [](const FusedPointwise& fused) { plan_fused(DeviceClass::kCpu, fused); };
  EXPECT_THROW(plan({{f}, {{"exp", {input(0)}, i}}, {0}}), device::Error);
  EXPECT_THROW(plan({{f}, {{"exp", {step(0)}, f}}, {0}}), device::Error);
  EXPECT_THROW(plan({{f}, {{"exp", {input(1)}, f}}, {0}}), device::Error);
  EXPECT_THROW(plan({{f}, {{"exp", {input(0)}, f}}, {1}}), device::Error);
  EXPECT_THROW(plan({{f}, {{"exp", {input(0)}, f}}, {}}), device::Error);
}

}  // namespace
}  // namespace ballast::kernels::testing
