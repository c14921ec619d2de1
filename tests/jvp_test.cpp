// Tangents computed on the device against central differences of the double-precision reference,
// for every op that has gradients and for their gradients; and how jvp and vjp are called.
#include "frontend/ballast_frontend.h"
#include "frontend/program/primitive.h"
#include "frontend/transforms/linearize.h"
#include "tests/op_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace ballast::tests {
namespace {

using testing::ElementsAre;

// A direction, the same in every run.
HostArray direction(const HostArray& at, size_t number) {
  HostArray tangent = at;
  for (size_t i = 0; i < tangent.values.size(); ++i) {
    const double phase = static_cast<double>(number + 1) * (static_cast<double>(i) + 0.7);
    tangent.values[i] = static_cast<float>(std::sin(1.3 * phase));
  }
  return tangent;
}

std::vector<HostArray> moved(const std::vector<HostArray>& from,
                             const std::vector<HostArray>& tangents,
                             const std::vector<size_t>& numbers, double step) {
  std::vector<HostArray> to = from;
  for (size_t i = 0; i < numbers.size(); ++i) {
    std::vector<double>& values = to[numbers[i]].values;
    for (size_t e = 0; e < values.size(); ++e) values[e] += step * tangents[i].values[e];
  }
  return to;
}

std::vector<size_t> float_inputs(const std::vector<HostArray>& inputs) {
  std::vector<size_t> numbers;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].type.dtype == DType::kF32) numbers.push_back(i);
  }
  return numbers;
}

void check_tangents(const Program& program, const std::vector<HostArray>& inputs) {
  const std::vector<size_t> numbers = float_inputs(inputs);
  std::vector<HostArray> tangents;
  std::vector<Tensor> arguments;
  for (const HostArray& input : inputs) arguments.push_back(to_tensor(input));
  for (size_t number : numbers) {
    tangents.push_back(direction(inputs[number], number));
    arguments.push_back(to_tensor(tangents.back()));
  }
  const Program extended = forward(program, numbers);
  verify(extended);
  const std::vector<Tensor> results = eval(extended, arguments);
  constexpr double kStep = 1e-5;
  const auto above = reference_eval(program, moved(inputs, tangents, numbers, kStep));
  const auto below = reference_eval(program, moved(inputs, tangents, numbers, -kStep));
  size_t next = above.size();
  for (size_t i = 0; i < above.size(); ++i) {
    if (!is_float(above[i].type.dtype)) continue;
    HostArray expected = above[i];
    double scale = 0;
    for (size_t e = 0; e < expected.values.size(); ++e) {
      expected.values[e] = (above[i].values[e] - below[i].values[e]) / (2 * kStep);
      scale = std::max(scale, std::abs(expected.values[e]));
    }
    EXPECT_EQ(difference(to_array(results[next++]), expected, 1e-3, 1e-5 + 1e-4 * scale), "")
        << "output " << i << " of\n"
        << to_string(program);
  }
}

Program program_of(const OpCase& row) {
  std::vector<TensorType> types;
  for (const HostArray& input : row.inputs) types.push_back(input.type);
  return trace(
      [&row](const std::vector<Tensor>& inputs) { return ops::call(row.op, inputs, row.attrs); },
      types);
}

// The sum of all outputs of `program`, each element with a weight of its own.
Program loss_of(const Program& program) {
  std::vector<TensorType> types;
  for (const Var& var : program.inputs) types.push_back(var->type);
  return trace(
      [&](const std::vector<Tensor>& inputs) -> std::vector<Tensor> {
        Tensor loss = Tensor::scalar(0);
        for (const Tensor& output : eval(program, inputs)) {
          HostArray weights = direction({output.type(), Elements(output.elements())}, 3);
          weights.type.dtype = DType::kF32;
          loss = loss + ops::sum(output * Tensor::on_host(std::vector<float>(weights.values.begin(),
                                                                             weights.values.end()),
                                                          output.shape()));
        }
        return {loss};
      },
      types);
}

std::vector<OpCase> smooth_cases() {
  std::vector<OpCase> cases;
  for (const OpCase& row : op_table()) {
    if (row.is_smooth) cases.push_back(row);
  }
  return cases;
}

class TangentTest : public testing::TestWithParam<OpCase> {};

TEST_P(TangentTest, MatchesDifferences) {
  check_tangents(program_of(GetParam()), GetParam().inputs);
}

// Forward over reverse.
TEST_P(TangentTest, OfGradientsMatchesDifferences) {
  const std::vector<HostArray>& inputs = GetParam().inputs;
  check_tangents(reverse(loss_of(program_of(GetParam())), float_inputs(inputs), {}), inputs);
}

// Reverse over forward: what the rules give can be differentiated again, and by jvp as well.
TEST_P(TangentTest, OfTangentsMatchesDifferences) {
  std::vector<HostArray> inputs = GetParam().inputs;
  const std::vector<size_t> numbers = float_inputs(inputs);
  const Program tangents = forward(program_of(GetParam()), numbers);
  for (size_t number : numbers) inputs.push_back(direction(inputs[number], number + 5));
  check_tangents(tangents, inputs);
  check_tangents(reverse(loss_of(tangents), float_inputs(inputs), {}), inputs);
}

// `program` with its float inputs times tensors that are made inside.
Program with_made_factors(const Program& program) {
  std::vector<TensorType> types;
  for (const Var& var : program.inputs) types.push_back(var->type);
  return trace(
      [&](std::vector<Tensor> inputs) {
        for (Tensor& input : inputs) {
          if (input.dtype() == DType::kF32) input = input * Tensor::ones(input.shape());
        }
        return eval(program, inputs);
      },
      types);
}

// vjp's two passes give what grad's one gives, also where both read what the function makes itself.
TEST_P(TangentTest, PullbackReadsWhatIsMadeInside) {
  const Program loss = with_made_factors(loss_of(program_of(GetParam())));
  const std::vector<size_t> numbers = float_inputs(GetParam().inputs);
  std::vector<Tensor> arguments;
  for (const HostArray& input : GetParam().inputs) arguments.push_back(to_tensor(input));
  const std::vector<Tensor> expected = eval(reverse(loss, numbers, {}), arguments);
  const std::vector<Tensor> got = Linearized(loss, arguments).pull({Tensor::scalar(1)});
  for (size_t i = 0; i < numbers.size(); ++i) {
    EXPECT_EQ(difference(to_array(got[numbers[i]]), to_array(expected[i + 1]), 1e-6, 1e-7), "");
  }
}

INSTANTIATE_TEST_SUITE_P(Table, TangentTest, testing::ValuesIn(smooth_cases()),
                         [](const testing::TestParamInfo<OpCase>& row) {
                           return row.param.op + "_" + std::to_string(row.index);
                         });

TEST(JvpTest, WhatHasNoDerivative) {
  std::vector<std::string> names;
  for (const std::string& name : primitive_names()) {
    const Primitive& row = *find_primitive(name);
    if (!row.vjp && !row.jvp) names.push_back(name);
  }
  EXPECT_THAT(names, ElementsAre("apply_adagrad", "apply_adam", "apply_adam_weight_decay",
                                 "apply_adamw", "apply_rms_prop"));
}

Tensor vector(const std::vector<float>& values) {
  return Tensor::from_host(values, {static_cast<int64_t>(values.size())});
}

std::vector<float> floats(const Tensor& tensor) { return tensor.to_host<float>(); }

TEST(JvpTest, OneArgument) {
  auto f = [](Tensor x) { return x * x; };
  auto [y, dy] = jvp(f, vector({1, 2, 3}), vector({1, 0, -1}));
  EXPECT_THAT(floats(y), ElementsAre(1, 4, 9));
  EXPECT_THAT(floats(dy), ElementsAre(2, 0, -6));
}

TEST(JvpTest, SeveralArgumentsTreesAndIntegers) {
  auto f = [](Tensor x, std::vector<Tensor> w, Tensor rows) {
    return std::tuple(ops::gather(x, rows) * w[0], rows + 1, stop_gradient(x));
  };
  const Tensor rows = Tensor::from_host<int32_t>({2, 0}, {2});
  auto [y, dy] = jvp(f, std::tuple(vector({1, 2, 3}), std::vector{vector({4, 5})}, rows),
                     std::tuple(vector({1, 1, 1}), std::vector{Tensor()}, Tensor()));
  EXPECT_THAT(floats(std::get<0>(y)), ElementsAre(12, 5));
  EXPECT_THAT(floats(std::get<0>(dy)), ElementsAre(4, 5));
  EXPECT_FALSE(std::get<1>(dy).defined());
  EXPECT_THAT(floats(std::get<2>(dy)), ElementsAre(0, 0, 0));
}

TEST(JvpTest, ParametersArePrimalsOrConstants) {
  Parameter w(vector({3, 4}), "w");
  const Tensor x = vector({1, 2}), v = vector({1, -1});
  auto f = [](Tensor a, Tensor b) { return a * b; };
  EXPECT_THAT(floats(jvp(f, std::tuple(x, w), std::tuple(v, x)).second), ElementsAre(4, 0));
  auto reads = [&](Tensor a) { return a * w; };
  EXPECT_THAT(floats(jvp(reads, x, v).second), ElementsAre(3, -4));
}

TEST(JvpTest, InsideJitAndOfGrad) {
  auto f = [](Tensor x) { return ops::sum(x * x * x); };
  auto second = jit([&](Tensor x, Tensor v) { return jvp(grad(f), x, v).second; });
  EXPECT_THAT(floats(second(vector({1, 2}), vector({1, -1}))), ElementsAre(6, -12));
  auto slope = [&](Tensor x) { return jvp(f, x, Tensor::ones({2})).second; };
  EXPECT_THAT(floats(jit(grad(slope))(vector({1, 2}))), ElementsAre(6, 12));
}

// The inner derivative is by its own argument only.
TEST(JvpTest, NestedDerivativesDoNotMix) {
  auto outer = [](Tensor x) {
    auto inner = [&](Tensor y) { return x + y; };
    return x * jvp(inner, Tensor::scalar(1), Tensor::scalar(1)).second;
  };
  EXPECT_EQ(jvp(outer, Tensor::scalar(5), Tensor::scalar(1)).second.item<float>(), 1);
  EXPECT_EQ(grad(outer)(Tensor::scalar(5)).item<float>(), 1);
}

TEST(VjpTest, OutputsOfAnyShapeAndNumber) {
  auto f = [](Tensor x, Tensor w) { return std::pair(x * w, ops::sum(x)); };
  auto [y, pullback] = vjp(f, vector({1, 2}), vector({3, 4}));
  EXPECT_THAT(floats(y.first), ElementsAre(3, 8));
  EXPECT_EQ(y.second.item<float>(), 3);
  auto [dx, dw] = pullback({vector({1, 10}), Tensor::scalar(100)});
  EXPECT_THAT(floats(dx), ElementsAre(103, 140));
  EXPECT_THAT(floats(dw), ElementsAre(1, 20));
  // Undefined cotangents are zero; a pullback can be used again.
  auto [only_x, none] = pullback({Tensor(), Tensor::scalar(2)});
  EXPECT_THAT(floats(only_x), ElementsAre(2, 2));
  EXPECT_THAT(floats(none), ElementsAre(0, 0));
}

TEST(VjpTest, IntegersHaveNoGradient) {
  auto f = [](Tensor x, Tensor rows) { return std::pair(ops::gather(x, rows), rows); };
  auto [y, pullback] = vjp(f, vector({1, 2}), Tensor::from_host<int32_t>({1, 1}, {2}));
  auto [dx, drows] = pullback({vector({1, 2}), Tensor()});
  EXPECT_THAT(floats(dx), ElementsAre(0, 3));
  EXPECT_FALSE(drows.defined());
}

// Parameters assigned between the two passes do not matter: the pullback has its values.
TEST(VjpTest, KeepsWhatItNeeds) {
  Parameter w(vector({3, 4}), "w");
  auto f = [&](Tensor x) {
    Tensor y = x * w;
    w.assign(y);
    return y;
  };
  auto [y, pullback] = vjp(f, vector({1, 2}));
  EXPECT_THAT(floats(w.value()), ElementsAre(3, 8));
  EXPECT_THAT(floats(std::get<0>(pullback(vector({1, 1})))), ElementsAre(3, 4));
}

// A tensor that the function makes, of numbers only, belongs to neither pass alone.
TEST(VjpTest, TensorsMadeInside) {
  auto f = [](Tensor x) { return ops::sum(x * x * ops::arange(0, 3)) + ops::sum(ops::tril(x)); };
  const Tensor x = ops::reshape(vector({1, 2, 3, 4, 5, 6, 7, 8, 9}), {3, 3});
  const std::vector<float> expected = {1, 4, 12, 1, 11, 24, 1, 17, 37};
  const auto pulled = [&](Tensor at) { return std::get<0>(vjp(f, at).second(Tensor::scalar(1))); };
  EXPECT_EQ(floats(pulled(x)), expected);
  EXPECT_EQ(floats(jit(pulled)(x)), expected);
  EXPECT_EQ(floats(jacrev(f)(x)), expected);
  EXPECT_THAT(floats(hvp(f, x, x)), ElementsAre(0, 4, 12, 0, 10, 24, 0, 16, 36));
}

TEST(VjpTest, InsideJitAndGrad) {
  auto f = [](Tensor x) {
    auto [y, pullback] = vjp([](Tensor z) { return ops::exp(z); }, x);
    return ops::sum(std::get<0>(pullback(y)));  // exp(2 x)
  };
  const float expected = 2 * std::exp(1.0f);
  EXPECT_NEAR(jit(grad(f))(vector({0.5})).to_host<float>()[0], expected, 1e-5);
}

}  // namespace
}  // namespace ballast::tests
