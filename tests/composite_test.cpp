// What the frontend writes with several ops, against definitions in double: values on many shapes
// in f32 and bf16, NaN and infinities, gradients by finite differences of the definitions.
#include "frontend/ballast_frontend.h"
#include "frontend/transforms/vjp.h"
#include "tests/reference_ops.h"
#include "tests/samples.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>

namespace ballast::tests {
namespace {

using Tensors = std::vector<Tensor>;
using Arrays = std::vector<HostArray>;
using Draw = std::function<HostArray(const Shape&)>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Draw between(double low, double high) {
  return [=](const Shape& shape) { return real(shape, low, high); };
}

// Computed element by element from operands that broadcast.
struct Composite {
  std::string name;
  std::vector<Draw> operands;
  std::function<Tensor(const Tensors&)> call;
  std::function<double(const Elements&)> value;
  // Ops one after another that round: 0 means that all bits are right.
  int roundings;
  // Operands that may be NaN and what special() else holds, and up to which size.
  std::vector<std::pair<size_t, double>> special = {};
  // A loss: the call that reduces.
  std::function<Tensor(const Tensors&, const std::string& reduction)> reduced = {};
};

template <class Call>
Composite loss(const std::string& name, const std::vector<Draw>& operands, const Call& call,
               double (*value)(double x, double t), int roundings,
               const std::vector<std::pair<size_t, double>>& special) {
  const auto reduced = [call](const Tensors& in, const std::string& reduction) {
    return call(in[0], in[1], reduction);
  };
  return {name,
          operands,
          [reduced](const Tensors& in) { return reduced(in, "none"); },
          [value](const Elements& e) { return value(e[0], e[1]); },
          roundings,
          special,
          reduced};
}

std::vector<Composite> losses() {
  const std::vector<Draw> two = {between(-3, 3), between(-3, 3)};
  return {
      loss(
          "mse", two, [](auto& x, auto& t, auto& r) { return ops::mse_loss(x, t, r); },
          [](double x, double t) { return (x - t) * (x - t); }, 2,
          {{0, kInfinity}, {1, kInfinity}}),
      loss(
          "l1", two, [](auto& x, auto& t, auto& r) { return ops::l1_loss(x, t, r); },
          [](double x, double t) { return std::abs(x - t); }, 1, {{0, kInfinity}, {1, kInfinity}}),
      loss(
          "smooth_l1", two,
          [](auto& x, auto& t, auto& r) { return ops::smooth_l1_loss(x, t, 0.5, r); },
          [](double x, double t) {
            const double d = std::abs(x - t);
            return d < 0.5 ? d * d : d - 0.25;
          },
          3, {{0, kInfinity}, {1, kInfinity}}),
      loss(
          "huber", two, [](auto& x, auto& t, auto& r) { return ops::huber_loss(x, t, 2, r); },
          [](double x, double t) {
            const double d = std::abs(x - t);
            return d <= 2 ? d * d / 2 : 2 * d - 2;
          },
          3, {{0, kInfinity}, {1, kInfinity}}),
      // Logarithms of what is rounded: a part of 1 - x, hence x not near 1.
      loss(
          "binary_cross_entropy", {between(0.1, 0.9), between(0, 1)},
          [](auto& x, auto& t, auto& r) { return ops::binary_cross_entropy(x, t, r); },
          [](double x, double t) { return -(t * std::log(x) + (1 - t) * std::log(1 - x)); }, 8,
          {{1, kInfinity}}),
      loss(
          "binary_cross_entropy_with_logits", {between(-5, 5), between(0, 1)},
          [](auto& x, auto& t, auto& r) { return ops::binary_cross_entropy_with_logits(x, t, r); },
          [](double x, double t) {
            return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))) - x * t;
          },
          4, {{0, 1e30}, {1, 1e30}}),
  };
}

std::vector<Composite> composites() {
  const Draw any = between(-4, 4), far = between(-8, 8), mask = boolean;
  std::vector<Composite> all = {
      {"clip",
       {any, between(-2, -1), between(1, 2)},
       [](auto& in) { return ops::clip(in[0], in[1], in[2]); },
       [](auto& e) { return std::isnan(e[0]) ? e[0] : std::min(std::max(e[0], e[1]), e[2]); },
       0,
       {{0, kInfinity}}},
      {"clip_to_numbers",
       {any},
       [](auto& in) { return ops::clip(in[0], -0.5, 1.5); },
       [](auto& e) { return std::isnan(e[0]) ? e[0] : std::clamp(e[0], -0.5, 1.5); },
       0,
       {{0, kInfinity}}},
      {"where",
       {mask, any, any},
       [](auto& in) { return ops::where(in[0], in[1], in[2]); },
       [](auto& e) { return e[0] != 0 ? e[1] : e[2]; },
       0,
       {{1, kInfinity}, {2, kInfinity}}},
      {"masked_fill",
       {any, mask, any},
       [](auto& in) { return ops::masked_fill(in[0], in[1], in[2]); },
       [](auto& e) { return e[1] != 0 ? e[2] : e[0]; },
       0,
       {{0, kInfinity}, {2, kInfinity}}},
      {"elu",
       {any},
       [](auto& in) { return ops::elu(in[0], 0.75); },
       [](auto& e) { return e[0] > 0 ? e[0] : 0.75 * std::expm1(e[0]); },
       2,
       {{0, kInfinity}}},
      {"leaky_relu",
       {any},
       [](auto& in) { return ops::leaky_relu(in[0], 0.125); },
       [](auto& e) { return e[0] > 0 ? e[0] : 0.125 * e[0]; },
       0,
       {{0, kInfinity}}},
      {"relu6",
       {far},
       [](auto& in) { return ops::relu6(in[0]); },
       [](auto& e) { return std::isnan(e[0]) ? e[0] : std::clamp(e[0], 0.0, 6.0); },
       0,
       {{0, kInfinity}}},
      {"hard_sigmoid",
       {far},
       [](auto& in) { return ops::hard_sigmoid(in[0]); },
       [](auto& e) { return std::isnan(e[0]) ? e[0] : std::clamp(e[0] + 3, 0.0, 6.0) / 6; },
       2,
       {{0, kInfinity}}},
      // -inf times 0 is NaN, in these two.
      {"hard_swish",
       {far},
       [](auto& in) { return ops::hard_swish(in[0]); },
       [](auto& e) {
         return std::isnan(e[0]) ? e[0] : e[0] * (std::clamp(e[0] + 3, 0.0, 6.0) / 6);
       },
       3,
       {{0, kInfinity}}},
      {"mish",
       {any},
       [](auto& in) { return ops::mish(in[0]); },
       [](auto& e) { return e[0] * std::tanh(e[0] > 30 ? e[0] : std::log1p(std::exp(e[0]))); },
       3,
       {{0, kInfinity}}},
  };
  for (const Composite& loss : losses()) all.push_back(loss);
  return all;
}

// Of the operands in turn; the last one is that of the rest.
const std::vector<std::vector<Shape>> kOperandShapes = {{{}},
                                                        {{1}},
                                                        {{2}},
                                                        {{7}},
                                                        {{31}},
                                                        {{1023}},
                                                        {{1, 1}},
                                                        {{3, 5}},
                                                        {{17, 1}},
                                                        {{0}},
                                                        {{3, 0, 2}},
                                                        {{2, 3, 17}},
                                                        {{5, 129}},
                                                        {{1, 2, 3, 4}},
                                                        {{7}, {}},
                                                        {{}, {7}},
                                                        {{3, 5}, {5}},
                                                        {{3, 1}, {1, 5}},
                                                        {{2, 3, 4}, {3, 1}},
                                                        {{0, 4}, {4}},
                                                        {{1}, {2, 3}},
                                                        {{4, 1}, {5}, {}}};

Arrays drawn(const Composite& composite, const std::vector<Shape>& shapes) {
  Arrays arrays;
  for (size_t i = 0; i < composite.operands.size(); ++i) {
    arrays.push_back(composite.operands[i](shapes[std::min(i, shapes.size() - 1)]));
  }
  return arrays;
}

void narrow(Arrays& arrays, DType dtype) {
  for (HostArray& array : arrays) {
    if (array.type.dtype != DType::kF32) continue;
    array.type.dtype = dtype;
    for (double& value : array.values) value = rounded(value, dtype);
  }
}

HostArray defined(const Composite& composite, const Arrays& arrays) {
  Types types;
  for (const HostArray& array : arrays) types.push_back(array.type);
  const auto is_real = [](const TensorType& type) { return is_float(type.dtype); };
  const DType dtype = std::find_if(types.begin(), types.end(), is_real)->dtype;
  Arrays results = {{{dtype, broadcast_shape(types)}, {}}};
  results[0].values.resize(static_cast<size_t>(results[0].type.elements()));
  pointwise(composite.value)(arrays, {}, results);
  return results[0];
}

Tensors to_tensors(const Arrays& arrays) {
  Tensors tensors;
  for (const HostArray& array : arrays) tensors.push_back(to_tensor(array));
  return tensors;
}

// Every op rounds what is no larger than some 8 and may be off by 4 ulps of f32; a narrow type
// rounds once more for each.
double tolerance(const Composite& composite, DType dtype) {
  const double rounding = dtype == DType::kBF16 ? 0x1p-8 : 4 * 0x1p-24;
  return composite.roundings * rounding;
}

void expect_defined(const Composite& composite, const Arrays& arrays) {
  const HostArray expected = defined(composite, arrays);
  const double part = tolerance(composite, expected.type.dtype);
  EXPECT_EQ(difference(to_array(composite.call(to_tensors(arrays))), expected, part, 8 * part), "")
      << testing::PrintToString(to_string(arrays[0].type)) << " first";
}

// Traced, each op that a composite is made of names the line of the composite's call.
void expect_lines(const FlatFunction& function, const Types& types) {
  for (const Equation& equation : trace(function, types).equations) {
    EXPECT_STREQ(equation.where.file, __FILE__)
        << equation.primitive << ", line " << equation.where.line;
  }
}

class CompositeValueTest : public testing::TestWithParam<Composite> {};

TEST_P(CompositeValueTest, OnManyShapes) {
  for (const auto& shapes : kOperandShapes) {
    for (DType dtype : {DType::kF32, DType::kBF16}) {
      Arrays arrays = drawn(GetParam(), shapes);
      narrow(arrays, dtype);
      expect_defined(GetParam(), arrays);
    }
  }
}

TEST_P(CompositeValueTest, OfNaNAndInfinity) {
  for (const auto& [number, largest] : GetParam().special) {
    for (DType dtype : {DType::kF32, DType::kBF16}) {
      Arrays arrays = drawn(GetParam(), {{10}});
      arrays[number] = special();
      for (double& value : arrays[number].values) {
        value = std::isnan(value) ? value : std::clamp(value, -largest, largest);
      }
      narrow(arrays, dtype);
      expect_defined(GetParam(), arrays);
    }
  }
}

TEST_P(CompositeValueTest, NamesTheLineOfItsCall) {
  Types types;
  for (const HostArray& array : drawn(GetParam(), {{3}})) types.push_back(array.type);
  expect_lines([](const Tensors& in) { return Tensors{GetParam().call(in)}; }, types);
}

double total(const HostArray& array) {
  return std::accumulate(array.values.begin(), array.values.end(), 0.0);
}

// What call gives, as sums or means, moved along each element of each float operand.
TEST_P(CompositeValueTest, GradientsMatchDifferences) {
  const Composite& composite = GetParam();
  for (const auto& shapes : kOperandShapes) {
    Arrays arrays = drawn(composite, shapes);
    const double results = static_cast<double>(defined(composite, arrays).values.size());
    if (results > 60) continue;
    for (const char* reduction : {"sum", "mean"}) {
      const bool is_mean = reduction == std::string("mean");
      if (is_mean && (!composite.reduced || results == 0)) continue;
      const FlatFunction fn = [&](const Tensors& in) {
        return Tensors{composite.reduced ? composite.reduced(in, reduction)
                                         : ops::sum(composite.call(in))};
      };
      Types types;
      std::vector<size_t> numbers;
      for (const HostArray& array : arrays) {
        if (is_float(array.type.dtype)) numbers.push_back(types.size());
        types.push_back(array.type);
      }
      const Tensors got = eval(reverse(trace(fn, types), numbers, {}), to_tensors(arrays));
      for (size_t n = 0; n < numbers.size(); ++n) {
        HostArray slopes = arrays[numbers[n]];
        for (size_t i = 0; i < slopes.values.size(); ++i) {
          constexpr double kStep = 1e-5;
          double& element = arrays[numbers[n]].values[i];
          const double original = element;
          element = original + kStep;
          const double above = total(defined(composite, arrays));
          element = original - kStep;
          const double below = total(defined(composite, arrays));
          element = original;
          slopes.values[i] = (above - below) / (2 * kStep) / (is_mean ? results : 1);
        }
        // Steps are worth some 1e-8, f32 more; a broadcast operand sums as many as there are.
        EXPECT_EQ(difference(to_array(got[n + 1]), slopes, 1e-4, 1e-5), "")
            << reduction << ", operand " << numbers[n] << ", " << to_string(types[0]);
      }
    }
  }
}

const auto kName = [](const auto& row) { return row.param.name; };

INSTANTIATE_TEST_SUITE_P(All, CompositeValueTest, testing::ValuesIn(composites()), kName);

class LossValueTest : public testing::TestWithParam<Composite> {};

// Sums in f32, whose rounding is a part of what is added.
TEST_P(LossValueTest, SumsAndMeans) {
  for (const auto& shapes : kOperandShapes) {
    const Arrays arrays = drawn(GetParam(), shapes);
    const Tensors in = to_tensors(arrays);
    const HostArray parts = defined(GetParam(), arrays);
    const HostArray sum{{DType::kF32, {}}, {total(parts)}};
    const HostArray mean{{DType::kF32, {}},
                         {total(parts) / static_cast<double>(parts.values.size())}};
    EXPECT_EQ(difference(to_array(GetParam().reduced(in, "sum")), sum, 1e-5, 1e-6), "");
    EXPECT_EQ(difference(to_array(GetParam().reduced(in, "mean")), mean, 1e-5, 1e-6), "");
  }
}

INSTANTIATE_TEST_SUITE_P(All, LossValueTest, testing::ValuesIn(losses()), kName);

// As numpy does: bool operands are compared and combined, numbers are true where they are not 0.
TEST(LogicTest, BoolsAreNumbersAndNumbersBools) {
  const Tensor a = Tensor::from_host<bool>({true, true, false, false}, {4}),
               b = Tensor::from_host<bool>({true, false, true, false}, {4}),
               x = Tensor::from_host<float>({-1, 0.5f, NAN, -0.0f}, {4}),
               n = Tensor::from_host<int64_t>({int64_t{1} << 40, 0, -3, 0}, {4});
  const std::vector<std::pair<Tensor, std::vector<bool>>> results = {
      {ops::equal(a, b), {true, false, false, true}},
      {ops::equal(a, true), {true, true, false, false}},
      {ops::not_equal(a, b), {false, true, true, false}},
      {ops::bitwise_and(a, b), {true, false, false, false}},
      {ops::bitwise_or(a, b), {true, true, true, false}},
      {ops::bitwise_xor(a, b), {false, true, true, false}},
      {ops::bitwise_not(a), {false, false, true, true}},
      {ops::truth(x), {true, true, true, false}},
      {ops::logical_and(x, a), {true, true, false, false}},
      {ops::logical_or(n, b), {true, false, true, false}},
      {ops::logical_xor(x, n), {false, true, false, false}},
      {ops::logical_not(n), {false, true, false, true}},
      {ops::reduce_any(ops::reshape(n, {2, 2}), {0}), {true, false}},
      {ops::reduce_all(ops::reshape(x, {2, 2}), {1}), {true, false}}};
  for (size_t i = 0; i < results.size(); ++i) {
    EXPECT_EQ(results[i].first.dtype(), DType::kBool) << i;
    EXPECT_EQ(results[i].first.to_host<bool>(), results[i].second) << i;
  }
  EXPECT_THROW(ops::equal(a, n), Error);
  const TensorType bools{DType::kBool, {4}}, numbers{DType::kF32, {4}};
  expect_lines(
      [](const Tensors& in) {
        return Tensors{ops::equal(in[0], in[0]), ops::bitwise_not(in[0]),
                       ops::truth(in[1]),        ops::logical_and(in[0], in[1]),
                       ops::logical_not(in[1]),  ops::reduce_any(in[1], {0})};
      },
      {bools, numbers});
  EXPECT_THROW(ops::bitwise_and(x, x), Error);
}

TEST(IntegerTest, NoGradientPassesThem) {
  const Tensor whole = Tensor::from_host<int32_t>({1, 2, 3, 4}, {2, 2});
  const auto weighted = [&](const Tensor& x) {
    const Tensor product = ops::matmul(ops::pow(ops::cast(x, DType::kI32), 2), whole);
    return ops::sum(x * ops::cast(product, DType::kF32));
  };
  EXPECT_EQ(grad(weighted)(ops::cast(whole, DType::kF32)).to_host<float>(),
            (std::vector<float>{13, 18, 57, 82}));
}

}  // namespace
}  // namespace ballast::tests
