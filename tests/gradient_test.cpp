// Gradients computed on the device against central finite differences of the double-precision
// reference. A second derivative is the gradient of a function that contains a gradient, a third
// one that of a function that contains a second.
#include "frontend/ops/ops.h"
#include "frontend/transforms/custom.h"
#include "frontend/transforms/jvp.h"
#include "frontend/transforms/vjp.h"
#include "tests/gpu_class.h"
#include "tests/op_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

namespace ballast::tests {
namespace {

// d output 0 / d input `number`, by moving one element at a time.
HostArray finite_difference(const Program& program, std::vector<HostArray> inputs, size_t number) {
  HostArray gradient = inputs[number];
  for (size_t i = 0; i < gradient.values.size(); ++i) {
    double& element = inputs[number].values[i];
    double original = element;
    double step = 1e-5 * std::max(1.0, std::abs(original));
    element = original + step;
    double above = reference_eval(program, inputs)[0].values[0];
    element = original - step;
    double below = reference_eval(program, inputs)[0].values[0];
    element = original;
    gradient.values[i] = (above - below) / (2 * step);
  }
  return gradient;
}

// A scalar that depends on every element of `x` differently.
Tensor weighted_sum(const Tensor& x) {
  std::vector<float> weights;
  for (int64_t i = 0; i < x.elements(); ++i) {
    weights.push_back(0.3f + 0.7f * static_cast<float>((i * 7) % 11) / 11.0f);
  }
  return ops::sum(x * Tensor::on_host(weights, x.shape()));
}

void check_gradients(const FlatFunction& fn, const std::vector<HostArray>& inputs) {
  std::vector<TensorType> types;
  std::vector<Tensor> tensors;
  std::vector<size_t> numbers;
  for (const HostArray& input : inputs) {
    if (input.type.dtype == DType::kF32) numbers.push_back(types.size());
    types.push_back(input.type);
    tensors.push_back(to_tensor(input));
  }
  Program program = trace(fn, types);
  verify(program);
  Program extended = reverse(program, numbers, {});
  verify(extended);
  std::vector<Tensor> results = eval(extended, tensors);
  for (size_t i = 0; i < numbers.size(); ++i) {
    HostArray expected = finite_difference(program, inputs, numbers[i]);
    double scale = 0;
    for (double value : expected.values) scale = std::max(scale, std::abs(value));
    EXPECT_EQ(difference(to_array(results[i + 1]), expected, 1e-3, 1e-5 + 1e-4 * scale), "")
        << "input " << numbers[i] << " of\n"
        << to_string(program);
  }
}

FlatFunction loss_of(const OpCase& row) {
  return [&row](const std::vector<Tensor>& inputs) -> std::vector<Tensor> {
    Tensor loss = Tensor::scalar(0);
    for (const Tensor& output : ops::call(row.op, inputs, row.attrs)) {
      loss = loss + weighted_sum(output);
    }
    return {loss};
  };
}

// The gradients of `fn`, summed with weights: differentiating it takes second derivatives.
FlatFunction gradient_loss(const FlatFunction& fn) {
  return [fn](const std::vector<Tensor>& inputs) -> std::vector<Tensor> {
    std::vector<TensorType> types;
    std::vector<size_t> numbers;
    for (const Tensor& input : inputs) {
      if (input.dtype() == DType::kF32) numbers.push_back(types.size());
      types.push_back(input.type());
    }
    std::vector<Tensor> results = eval(reverse(trace(fn, types), numbers, {}), inputs);
    Tensor loss = Tensor::scalar(0);
    for (size_t i = 1; i < results.size(); ++i) loss = loss + weighted_sum(results[i]);
    return {loss};
  };
}

std::vector<OpCase> smooth_cases() {
  std::vector<OpCase> cases;
  for (const OpCase& row : op_table()) {
    if (row.is_smooth) cases.push_back(row);
  }
  return cases;
}

class GradientTest : public testing::TestWithParam<OpCase> {};

TEST_P(GradientTest, MatchesFiniteDifferences) {
  check_gradients(loss_of(GetParam()), GetParam().inputs);
}

TEST_P(GradientTest, SecondOrderMatchesFiniteDifferences) {
  check_gradients(gradient_loss(loss_of(GetParam())), GetParam().inputs);
}

// The float inputs moved along a direction that is the same in every run.
std::vector<HostArray> moved(std::vector<HostArray> inputs, double step) {
  double phase = 0.4;
  for (HostArray& input : inputs) {
    if (input.type.dtype != DType::kF32) continue;
    for (double& value : input.values) value += step * std::sin(phase += 1.3);
  }
  return inputs;
}

// The gradient of `fn` along a direction, in double by its own program, against the difference of
// what `fn` gives, as a part of what is tolerated: only rules are in question here, kernels are
// compared above.
double error_along_direction(const FlatFunction& fn, const std::vector<HostArray>& inputs) {
  std::vector<TensorType> types;
  std::vector<size_t> numbers;
  for (const HostArray& input : inputs) {
    if (input.type.dtype == DType::kF32) numbers.push_back(types.size());
    types.push_back(input.type);
  }
  const Program program = trace(fn, types), extended = reverse(program, numbers, {});
  verify(extended);
  const std::vector<HostArray> results = reference_eval(extended, inputs);
  const std::vector<HostArray> direction = moved(inputs, 1);
  double along = 0, scale = 0;
  for (size_t i = 0; i < numbers.size(); ++i) {
    for (size_t e = 0; e < results[i + 1].values.size(); ++e) {
      const size_t number = numbers[i];
      const double part =
          results[i + 1].values[e] * (direction[number].values[e] - inputs[number].values[e]);
      along += part;
      scale += std::abs(part);
    }
  }
  constexpr double kStep = 1e-5;
  const double above = reference_eval(program, moved(inputs, kStep))[0].values[0];
  const double below = reference_eval(program, moved(inputs, -kStep))[0].values[0];
  const double tolerance = 1e-6 + 1e-5 * scale + 1e-10 * std::abs(above) / kStep;
  return std::abs(along - (above - below) / (2 * kStep)) / tolerance;
}

TEST_P(GradientTest, ThirdOrderMatchesFiniteDifferences) {
  EXPECT_LE(
      error_along_direction(gradient_loss(gradient_loss(loss_of(GetParam()))), GetParam().inputs),
      1);
}

std::string case_name(const testing::TestParamInfo<OpCase>& info) {
  return info.param.op + "_" + std::to_string(info.index);
}

INSTANTIATE_TEST_SUITE_P(Table, GradientTest, testing::ValuesIn(smooth_cases()), case_name);

// Of each op with kernels of its own.
std::vector<OpCase> first_smooth_cases() {
  std::set<std::string> seen = op_families().pointwise;
  std::vector<OpCase> cases;
  for (const OpCase& row : smooth_cases()) {
    if (seen.insert(row.op).second) cases.push_back(row);
  }
  return cases;
}

using GpuGradientTest = OnGpuClass<GradientTest>;

TEST_P(GpuGradientTest, MatchesFiniteDifferences) {
  check_gradients(loss_of(GetParam()), GetParam().inputs);
}

INSTANTIATE_TEST_SUITE_P(Table, GpuGradientTest, testing::ValuesIn(first_smooth_cases()),
                         case_name);

class NarrowGradientTest : public testing::TestWithParam<DType> {};

// The gradients of every smooth op in bf16 and f16, whatever rules they go through, are those in
// f32 of the same inputs but for rounding. (The first sample of each op that has elements.)
TEST_P(NarrowGradientTest, EqualsThatInF32) {
  std::set<std::string> ops;
  for (OpCase row : smooth_cases()) {
    std::vector<TensorType> wide, narrow;
    std::vector<Tensor> wide_inputs, narrow_inputs;
    std::vector<size_t> numbers;
    bool is_empty = false;
    for (HostArray& input : row.inputs) {
      is_empty = is_empty || input.values.empty();
      TensorType type = input.type;
      if (type.dtype == DType::kF32) {
        numbers.push_back(wide.size());
        type.dtype = GetParam();
        for (double& value : input.values) value = rounded(value, type.dtype);
      }
      wide.push_back(input.type);
      narrow.push_back(type);
      wide_inputs.push_back(to_tensor(input));
      narrow_inputs.push_back(to_tensor({type, input.values}));
    }
    if (is_empty || numbers.empty() || !ops.insert(row.op).second) continue;
    SCOPED_TRACE(testing::PrintToString(row));
    auto loss = [&row](const std::vector<Tensor>& inputs) -> std::vector<Tensor> {
      Tensor total = Tensor::scalar(0);
      for (const Tensor& output : ops::call(row.op, inputs, row.attrs)) {
        total = total + weighted_sum(ops::cast(output, DType::kF32));
      }
      return {total};
    };
    std::vector<Tensor> expected = eval(reverse(trace(loss, wide), numbers, {}), wide_inputs);
    std::vector<Tensor> results;
    try {
      results = eval(reverse(trace(loss, narrow), numbers, {}), narrow_inputs);
    } catch (const Error& error) {
      ADD_FAILURE() << error.what();
    }
    for (size_t i = 1; i < results.size(); ++i) {
      EXPECT_EQ(results[i].dtype(), GetParam());
      HostArray want = to_array(expected[i]), got = to_array(results[i]);
      double scale = 0;
      for (double value : want.values) scale = std::max(scale, std::abs(value));
      got.type = want.type;
      EXPECT_EQ(difference(got, want, 0.03, 0.03 * std::max(scale, 0.3)), "")
          << "input " << numbers[i - 1];
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, NarrowGradientTest, testing::Values(DType::kBF16, DType::kF16),
                         [](const auto& type) { return std::string(name_of(type.param)); });

TEST(GradTest, LossInBf16) {
  auto f = [](Tensor x) { return ops::reduce_sum(x * x * 0.5f); };
  Tensor gradient = grad(f)(Tensor::from_host<float>({1, -3}, {2}, DType::kBF16));
  EXPECT_EQ(gradient.dtype(), DType::kBF16);
  EXPECT_EQ(gradient.to_host<float>(), (std::vector<float>{1, -3}));
}

HostArray sample(const Shape& shape, double phase) {
  HostArray array{{DType::kF32, shape}, {}};
  for (int64_t i = 0; i < array.type.elements(); ++i) {
    array.values.push_back(static_cast<float>(std::sin(1.7 * static_cast<double>(i) + phase)));
  }
  return array;
}

// Derivative number `order` of sin, with one of `wrong` that is a hundredth too large.
Tensor wrong_sine(const Tensor& x, int order, int wrong) {
  auto value = [order](const Tensor& at) {
    const Tensor even = order % 2 == 0 ? ops::sin(at) : ops::cos(at);
    return order % 4 < 2 ? even : -even;
  };
  if (order == 4) return value(x);
  auto forward = [=](Tensor at) { return std::pair(value(at), at); };
  auto backward = [=](Tensor at, Tensor u) {
    const double factor = order + 1 == wrong ? 1.01 : 1;
    return u * wrong_sine(at, order + 1, wrong) * factor;
  };
  return custom_vjp(value, forward, backward)(x);
}

// What these checks are worth: a rule that is wrong in its first, second or third derivative fails
// the check of that order, and none below.
TEST(GradientCheckTest, FindsAWrongRuleAtItsOrder) {
  const std::vector<HostArray> inputs = {sample({3}, 0.3)};
  for (int wrong = 0; wrong <= 3; ++wrong) {
    FlatFunction fn = [wrong](const std::vector<Tensor>& in) {
      return std::vector<Tensor>{weighted_sum(wrong_sine(in[0], 0, wrong))};
    };
    for (int order = 1; order <= 3; ++order) {
      const double error = error_along_direction(fn, inputs);
      if (order == wrong) {
        EXPECT_GT(error, 10) << order;
        break;
      }
      EXPECT_LE(error, 1) << order << " where " << wrong << " is wrong";
      fn = gradient_loss(fn);
    }
  }
}

struct Composite {
  const char* name;
  std::function<Tensor(const Tensor&)> fn;
};

class CompositeTest : public testing::TestWithParam<Composite> {};

TEST_P(CompositeTest, SecondOrder) {
  auto fn = [](const std::vector<Tensor>& inputs) {
    return std::vector<Tensor>{weighted_sum(GetParam().fn(inputs[0]))};
  };
  check_gradients(gradient_loss(fn), {sample({3, 4}, 0.3)});
}

INSTANTIATE_TEST_SUITE_P(
    All, CompositeTest,
    testing::Values(Composite{"softmax", [](const Tensor& x) { return ops::softmax(x); }},
                    Composite{"log_softmax",
                              [](const Tensor& x) { return ops::log_softmax(x, 0); }},
                    Composite{"mish", [](const Tensor& x) { return ops::mish(x); }},
                    Composite{"elu", [](const Tensor& x) { return ops::elu(x, 0.7); }},
                    Composite{"hard_swish", [](const Tensor& x) { return ops::hard_swish(x); }}),
    [](const testing::TestParamInfo<Composite>& composite) { return composite.param.name; });

TEST(GradTest, ThirdDerivativeOfTanh) {
  auto f = [](Tensor x) { return ops::tanh(x); };
  float x = 0.4f;
  double t = std::tanh(x);
  double expected = (1 - t * t) * (6 * t * t - 2);
  EXPECT_NEAR(grad(grad(grad(f)))(Tensor::scalar(x)).item<float>(), expected, 1e-5);
}

// Ops by name, with attributes left out or counted from the end, as docs/ops.md allows.
TEST(GradTest, CallsWithAsFewAttributesAsPossible) {
  const HostArray x = sample({2, 3}, 0.3), b = sample({3, 2}, 0.9), one = sample({3}, 0.1);
  const auto check = [](const char* op, const Attrs& attrs, const std::vector<HostArray>& inputs) {
    SCOPED_TRACE(op);
    check_gradients(
        [&](const std::vector<Tensor>& in) {
          return std::vector<Tensor>{weighted_sum(ops::call(op, in, attrs)[0])};
        },
        inputs);
  };
  check("reduce_sum", {}, {x});
  check("reduce_prod", {{"axes", std::vector<int64_t>{-2}}}, {x});
  check("reduce_max", {{"axes", std::vector<int64_t>{-1}}}, {x});
  check("cumsum", {{"axis", int64_t{-1}}}, {x});
  check("softmax", {}, {x});
  check("log_softmax", {{"axis", int64_t{-2}}}, {x});
  check("matmul", {}, {x, b});
  check("layer_norm", {}, {x, one, one});
  check("rms_norm", {}, {x, one});
  check("concat", {}, {x, x});
  const Tensor rows = Tensor::from_host<int32_t>({1, 1, 0}, {3});
  const auto gathered = [&](Tensor t) { return ops::sum(ops::call("gather", {t, rows})[0]); };
  EXPECT_EQ(grad(gathered)(to_tensor(x)).to_host<float>(), (std::vector<float>{1, 1, 1, 2, 2, 2}));
}

TEST(GradTest, ProductsWithAnEpilogueHaveNone) {
  const Tensor x = to_tensor(sample({2, 2}, 0.3));
  const auto product = [&](Tensor a) {
    return ops::call("matmul", {a, x}, {{"activation", std::string("relu")}})[0];
  };
  EXPECT_THROW(grad([&](Tensor a) { return ops::sum(product(a)); })(x), Error);
  EXPECT_THROW(jvp(product, x, x), Error);
}

// The exponent is whole and has no gradient: beside it, that of the base only.
TEST(GradTest, PowerOfNegativeBases) {
  for (float exponent : {3.0f, -2.0f, 1.0f}) {
    const FlatFunction power = [exponent](const std::vector<Tensor>& in) {
      return std::vector<Tensor>{weighted_sum(ops::pow(in[0], exponent))};
    };
    const HostArray bases{{DType::kF32, {4}}, {-1.5, -0.75, 0.5, -2}};
    check_gradients(power, {bases});
    check_gradients(gradient_loss(power), {bases});
  }
}

TEST(GradTest, ProductWithZeros) {
  auto f = [](Tensor x) { return ops::reduce_prod(x); };
  auto gradient = [&](const std::vector<float>& x) {
    return grad(f)(Tensor::from_host(x, {3})).template to_host<float>();
  };
  EXPECT_EQ(gradient({2, 0, 4}), (std::vector<float>{0, 8, 0}));
  EXPECT_EQ(gradient({0, 0, 4}), (std::vector<float>{0, 0, 0}));
}

TEST(GradTest, StopGradientAndUnusedArguments) {
  auto f = [](Tensor x, Tensor y) { return ops::sum(x * stop_gradient(x)); };
  Tensor x = Tensor::from_host<float>({1, 2}, {2});
  auto gradients = grad(f, {0, 1})(x, x);
  EXPECT_EQ(gradients[0].to_host<float>(), (std::vector<float>{1, 2}));
  EXPECT_EQ(gradients[1].to_host<float>(), (std::vector<float>{0, 0}));
}

TEST(GradTest, PositionsWeightsAndAux) {
  Parameter w(Tensor::from_host<float>({2, 3}, {2}), "w");
  auto f = [&](Tensor x) { return std::tuple(ops::sum(x * w * w), x + 1.0f); };
  Tensor x = Tensor::from_host<float>({5, 7}, {2});
  auto [value, gradients] = value_and_grad(f, 0, std::vector<Parameter>{w}, true)(x);
  EXPECT_EQ(std::get<0>(value).item<float>(), 5 * 4 + 7 * 9);
  EXPECT_EQ(std::get<1>(value).to_host<float>(), (std::vector<float>{6, 8}));
  EXPECT_EQ(gradients.first.to_host<float>(), (std::vector<float>{4, 9}));
  EXPECT_EQ(gradients.second.at(0).to_host<float>(), (std::vector<float>{20, 42}));
}

}  // namespace
}  // namespace ballast::tests
