#include "kernels/test_support.h"

namespace ballast::kernels::testing {
namespace {

using Ref = FusedStep::Ref;

// Writes chains down: in(type), then steps by op and what they read.
class Chain {
 public:
  explicit Chain(Shape shape) : shape_(std::move(shape)) {}
  Ref in(const Shape& shape, DType dtype = DType::kF32) {
    fused.inputs.push_back({dtype, shape});
    return {true, static_cast<uint32_t>(fused.inputs.size()) - 1};
  }
  Ref operator()(const std::string& op, const std::vector<Ref>& args, DType dtype = DType::kF32) {
    Shape shape(shape_.size(), 1);
    for (const Ref& ref : args) {
      const Shape& from =
          ref.is_input ? fused.inputs[ref.index].shape : fused.steps[ref.index].type.shape;
      for (size_t i = 0; i < from.size(); ++i) {
        int64_t& extent = shape[shape.size() - from.size() + i];
        if (extent == 1) extent = from[i];
      }
    }
    if (is_row_reduction(op)) shape.back() = 1;
    fused.steps.push_back({op, args, {dtype, shape}});
    fused.outputs = {static_cast<uint32_t>(fused.steps.size()) - 1};
    return {false, fused.outputs[0]};
  }
  FusedPointwise fused;

 private:
  Shape shape_;
};

Chain softmax_chain(const Shape& shape) {
  Chain f(shape);
  const Ref x = f.in(shape), scale = f.in({});
  const Ref scaled = f("mul", {x, scale});
  const Ref e = f("exp", {f("sub", {scaled, f("reduce_max", {scaled})})});
  f("div", {e, f("reduce_sum", {e})});
  return f;
}

// y = (x + r - mean) rsqrt(variance + epsilon) gamma + beta.
Chain layer_norm_chain(const Shape& shape, DType dtype = DType::kF32) {
  Chain f(shape);
  const Ref x = f.in(shape, dtype), r = f.in(shape, dtype), gamma = f.in({shape.back()}, dtype),
            beta = f.in({shape.back()}, dtype), epsilon = f.in({1}, dtype);
  const Ref sum = f("add", {x, r}, dtype);
  const Ref distance = f("sub", {sum, f("reduce_mean", {sum}, dtype)}, dtype);
  const Ref variance = f("reduce_mean", {f("mul", {distance, distance}, dtype)}, dtype);
  const Ref rstd = f("rsqrt", {f("add", {variance, epsilon}, dtype)}, dtype);
  f("add", {f("mul", {f("mul", {distance, rstd}, dtype), gamma}, dtype), beta}, dtype);
  return f;
}

// Ends in one value by row, takes one by row, and passes over the row thrice.
Chain distance_chain(const Shape& shape) {
  Chain f(shape);
  Shape line = shape;
  line.back() = 1;
  const Ref x = f.in(shape), weight = f.in(line);
  const Ref low = f("reduce_min", {x}), high = f("reduce_max", {x});
  const Ref range = f("sub", {high, low});
  const Ref unit = f("div", {f("sub", {x, low}), range});
  f("mul", {f("sqrt", {f("reduce_sum", {f("mul", {unit, unit})})}), weight});
  return f;
}

// Both softmaxes between other steps; the second passes over the first's result.
Chain softmax_op_chain(const Shape& shape) {
  Chain f(shape);
  const Ref x = f.in(shape), weight = f.in({shape.back()});
  const Ref p = f("softmax", {f("mul", {x, weight})});
  f("add", {f("log_softmax", {f("mul", {p, weight})}), x});
  return f;
}

HostTensor cast_to(const HostTensor& tensor, DType dtype) {
  if (tensor.type.dtype == dtype) return tensor;
  const TensorType type{dtype, tensor.type.shape};
  return run_plan(plan_pointwise(DeviceClass::kCpu, "cast", {tensor.type}, type), {tensor}, type);
}

std::vector<HostTensor> inputs_of(const FusedPointwise& fused) {
  std::vector<HostTensor> inputs;
  for (const TensorType& type : fused.inputs) {
    const auto seed = static_cast<uint32_t>(inputs.size()) + 5;
    inputs.push_back(cast_to(random_f32(type.shape, seed, 0.1f, 3.0f), type.dtype));
  }
  return inputs;
}

// The same steps one kernel at a time.
HostTensor run_separately(DeviceClass c, const FusedPointwise& fused,
                          const std::vector<HostTensor>& inputs) {
  std::vector<HostTensor> results;
  for (const FusedStep& step : fused.steps) {
    std::vector<HostTensor> args;
    std::vector<TensorType> types;
    for (const Ref& ref : step.args) {
      args.push_back(ref.is_input ? inputs[ref.index] : results[ref.index]);
      types.push_back(args.back().type);
    }
    if (!is_row_reduction(step.op)) {
      const Shape& shape = step.type.shape;
      const Plan plan = is_row_op(step.op) ? plan_softmax(c, step.op, shape,
                                                          static_cast<int64_t>(shape.size()) - 1)
                                           : plan_pointwise(c, step.op, types, step.type);
      results.push_back(run_plan(plan, args, step.type));
      continue;
    }
    const TensorType wide{DType::kF32, types[0].shape};
    Shape kept = wide.shape;
    kept.pop_back();
    const auto axis = static_cast<int64_t>(kept.size());
    const Plan plan =
        plan_reduce(c, step.op.substr(7), wide, {axis}, TensorType{DType::kF32, kept});
    const TensorType total{DType::kF32, step.type.shape};
    results.push_back(
        cast_to(run_plan(plan, {cast_to(args[0], DType::kF32)}, total), step.type.dtype));
  }
  return results.back();
}

void expect_same_bits(const FusedPointwise& fused, const std::vector<HostTensor>& inputs) {
  for (DeviceClass c : device_classes()) {
    const Plan plan = plan_fused_rows(c, fused);
    EXPECT_EQ(plan.launches.size(), 1);
    const HostTensor together = run_plan(plan, inputs, fused.steps.back().type);
    EXPECT_EQ(together.bytes, run_separately(c, fused, inputs).bytes)
        << class_name(c) << " " << to_string(fused.inputs[0]);
  }
}

using MakeChain = Chain (*)(const Shape& shape);
constexpr MakeChain kChains[] = {softmax_chain,
                                 [](const Shape& shape) { return layer_norm_chain(shape); },
                                 distance_chain, softmax_op_chain};
// Whole steps, and vectors and elements left over: all chains, also with NaN, on these.
const std::vector<Shape> kShapes = {{5, 64}, {4, 87}};

TEST(FusedRows, EqualsSeparateKernelsBitForBit) {
  for (const Shape& shape : kShapes) {
    for (MakeChain chain : kChains) {
      const FusedPointwise fused = chain(shape).fused;
      expect_same_bits(fused, inputs_of(fused));
    }
  }
  const std::vector<Shape> others = {{3, 16},   {2, 3, 17}, {1, 192},  {4, 1, 70}, {2, 2, 100},
                                     {33, 196}, {31},       {9, 1009}, {2, 4096}};
  for (size_t i = 0; i < others.size(); i += compiles_slowly() ? 2 : 1) {
    if (is_too_large(8 * elements(others[i]))) continue;
    const FusedPointwise fused = kChains[i % 4](others[i]).fused;
    expect_same_bits(fused, inputs_of(fused));
  }
}

TEST(FusedRows, NarrowTypesRoundAfterEveryStep) {
  for (const auto& [dtype, shape] :
       {std::pair{DType::kBF16, Shape{3, 45}}, std::pair{DType::kF16, Shape{2, 64}}}) {
    const FusedPointwise fused = layer_norm_chain(shape, dtype).fused;
    expect_same_bits(fused, inputs_of(fused));
  }
}

TEST(FusedRows, SoftmaxAgainstDouble) {
  const Shape shape{4, 87};
  const Chain chain = softmax_chain(shape);
  const auto inputs = inputs_of(chain.fused);
  const auto x = inputs[0].as<float>();
  const double scale = inputs[1].as<float>()[0];
  for (DeviceClass c : device_classes()) {
    const auto got =
        run_plan(plan_fused_rows(c, chain.fused), inputs, chain.fused.inputs[0]).as<float>();
    for (int64_t row = 0; row < shape[0]; ++row) {
      double total = 0;
      for (int64_t i = 0; i < shape[1]; ++i) total += std::exp(scale * x[row * shape[1] + i]);
      for (int64_t i = 0; i < shape[1]; ++i) {
        const int64_t at = row * shape[1] + i;
        EXPECT_NEAR(got[at], std::exp(scale * x[at]) / total, 2e-6) << class_name(c) << " " << at;
      }
    }
  }
}

// A row with a NaN or infinities gives what the separate kernels give, and its neighbours do not
// notice.
TEST(FusedRows, NanAndInfinityStayInTheirRows) {
  for (const Shape& shape : kShapes) {
    for (MakeChain chain : kChains) {
      const FusedPointwise fused = chain(shape).fused;
      auto inputs = inputs_of(fused);
      auto values = inputs[0].as<float>();
      values[shape[1] - 1] = std::nanf("");
      values[shape[1]] = INFINITY;
      values[3 * shape[1] + 5] = -INFINITY;
      inputs[0] = f32(shape, values);
      expect_same_bits(fused, inputs);
    }
  }
}

// Masks are steps too, and a row's own truth values.
TEST(FusedRows, BoolSteps) {
  const Shape shape{5, 40};
  Chain f(shape);
  const Ref x = f.in(shape), limit = f.in({shape[1]});
  const Ref mean = f("reduce_mean", {x});
  const Ref above = f("greater", {x, mean}, DType::kBool);
  const Ref kept = f("select", {above, x, limit});
  const Ref total = f("reduce_sum", {kept});
  const Ref is_large = f("greater", {total, mean}, DType::kBool);
  f("select", {is_large, f("select", {above, total, kept}), x});
  expect_same_bits(f.fused, inputs_of(f.fused));
}

TEST(FusedRows, NothingToDoForNoRows) {
  const Chain chain = softmax_chain({0, 32});
  EXPECT_TRUE(plan_fused_rows(DeviceClass::kCpu, chain.fused).launches.empty());
}

TEST(FusedRows, RefusesWhatItDoesNotTake) {
  const auto refuses = [](const FusedPointwise& fused) {
    EXPECT_THROW(plan_fused_rows(DeviceClass::kCpu, fused), device::Error);
  };
  refuses(softmax_chain({4, 8}).fused);  // no whole vector
  refuses(softmax_chain({4, 8192}).fused);
  FusedPointwise fused = softmax_chain({4, 32}).fused;
  fused.outputs = {1};
  refuses(fused);
  fused = softmax_chain({4, 32}).fused;
  fused.steps[1].type.dtype = DType::kI32;
  refuses(fused);
  // Repeats within the rows' outer dimensions.
  EXPECT_FALSE(is_fusable_row_input({2, 1, 32}, {2, 3, 32}));
  EXPECT_TRUE(is_fusable_row_input({1, 3, 32}, {1, 3, 32}));
  EXPECT_TRUE(is_fusable_row_input({2, 3, 1}, {2, 3, 32}));
  Chain f({2, 3, 32});
  f("reduce_sum", {f("add", {f.in({2, 3, 32}), f.in({2, 1, 32})})});
  refuses(f.fused);
}

}  // namespace
}  // namespace ballast::kernels::testing
