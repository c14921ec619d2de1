// Norms, and what is made with them, against their definitions as loops in double: values,
// gradients by differences, second derivatives, and zeros, where roots have no slope.
#include "frontend/ballast_frontend.h"
#include "tests/reference_ops.h"
#include "tests/samples.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

namespace ballast::tests {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double norm_of(const Elements& e, double ord) {
  double sum = 0, most = 0, least = kInfinity;
  for (double x : e) {
    sum += ord == 0 ? truth(x != 0) : std::pow(std::abs(x), ord);
    most = std::max(most, std::abs(x));
    least = std::min(least, std::abs(x));
  }
  if (std::isinf(ord)) return ord > 0 ? most : least;
  return ord == 0 ? sum : std::pow(sum, 1 / ord);
}

// Elements that are neither 0 nor near it.
HostArray far_from_zero(const Shape& shape) {
  HostArray x = real(shape, 0.3, 2);
  for (size_t i = 0; i < x.values.size(); i += 2) x.values[i] *= -1;
  return x;
}

// The axis's lines of x [outer, axis, inner].
Elements line_of(const HostArray& x, size_t outer, size_t inner, size_t axis) {
  const Shape& shape = x.type.shape;
  const auto length = static_cast<size_t>(shape[axis]);
  size_t step = 1;
  for (size_t d = axis + 1; d < shape.size(); ++d) step *= static_cast<size_t>(shape[d]);
  Elements line;
  for (size_t i = 0; i < length; ++i) line.push_back(x.values[(outer * length + i) * step + inner]);
  return line;
}

using Definition = std::function<Elements(const HostArray&)>;

// The call, the gradient of the sum of its elements' sines, and that gradient's derivative along v.
void expect_defined(const std::function<Tensor(const Tensor&)>& call, const HostArray& x,
                    const Definition& definition) {
  constexpr double kStep = 1e-4;
  const Elements values = definition(x);
  const Tensor in = to_tensor(x), y = call(in);
  EXPECT_EQ(difference(to_array(y), {{DType::kF32, y.shape()}, values}, 1e-5, 1e-6), "");
  const auto sines = [&](const HostArray& at) {
    double sum = 0;
    for (double value : definition(at)) sum += std::sin(value);
    return sum;
  };
  const auto moved = [&](const Elements& by, double step) {
    HostArray at = x;
    for (size_t i = 0; i < by.size(); ++i) at.values[i] += step * by[i];
    return sines(at);
  };
  HostArray slopes = x;
  for (size_t i = 0; i < x.values.size(); ++i) {
    Elements unit(x.values.size());
    unit[i] = 1;
    slopes.values[i] = (moved(unit, kStep) - moved(unit, -kStep)) / (2 * kStep);
  }
  const HostArray v = real(x.type.shape, -1, 1);
  const auto total = [&](Tensor t) { return ops::sum(ops::sin(call(t))); };
  const auto [gradient, bend] = jvp(grad(total), in, to_tensor(v));
  EXPECT_EQ(difference(to_array(gradient), slopes, 1e-4, 1e-4), "");
  const Elements bends = to_array(bend).values;
  const double along = std::inner_product(bends.begin(), bends.end(), v.values.begin(), 0.0);
  const double second =
      (moved(v.values, kStep) - 2 * sines(x) + moved(v.values, -kStep)) / (kStep * kStep);
  EXPECT_NEAR(along, second, 1e-3 + 1e-4 * std::abs(second));
}

class NormTest : public testing::TestWithParam<double> {};

TEST_P(NormTest, OfAllAndAlongAnAxis) {
  const double ord = GetParam();
  for (const Shape& shape : std::vector<Shape>{{5}, {2, 3, 4}}) {
    const HostArray x = far_from_zero(shape);
    expect_defined([&](const Tensor& t) { return ops::norm(t, ord); }, x,
                   [&](const HostArray& at) { return Elements{norm_of(at.values, ord)}; });
  }
  const HostArray x = far_from_zero({2, 3, 2});
  expect_defined([&](const Tensor& t) { return ops::norm(t, ord, {1}, true); }, x,
                 [&](const HostArray& at) {
                   Elements norms;
                   for (size_t i = 0; i < 4; ++i) {
                     norms.push_back(norm_of(line_of(at, i / 2, i % 2, 1), ord));
                   }
                   return norms;
                 });
}

INSTANTIATE_TEST_SUITE_P(Orders, NormTest,
                         testing::Values(0.5, 1.0, 2.0, 3.0, 0.0, kInfinity, -kInfinity));

// A vector of zeros has length 0 and no direction, and its gradient is 0 and not NaN; NaN stays.
TEST(DistanceTest, OfZerosAndNaN) {
  const Tensor zeros = Tensor::zeros({2, 3}), ones = Tensor::ones({2, 3});
  const std::vector<float> none(6, 0);
  for (double ord : {0.5, 2.0, 3.0}) {
    const auto length = [&](Tensor t) { return ops::sum(ops::norm(t, ord, {1})); };
    EXPECT_EQ(length(zeros).item<float>(), 0);
    EXPECT_EQ(grad(length)(zeros).to_host<float>(), none);
  }
  EXPECT_EQ(ops::normalize(zeros).to_host<float>(), none);
  const auto cosine = [&](Tensor t) { return ops::sum(ops::cosine_similarity(t, ones)); };
  EXPECT_EQ(cosine(zeros).item<float>(), 0);
  for (float slope : grad(cosine)(zeros).to_host<float>()) EXPECT_TRUE(std::isfinite(slope));
  const Tensor nan = Tensor::from_host<float>({NAN, 1}, {2});
  for (double ord : {1.0, 2.0, 3.0, kInfinity}) {
    EXPECT_TRUE(std::isnan(ops::norm(nan, ord).item<float>())) << ord;
  }
}

TEST(DistanceTest, DirectionsAndAngles) {
  const HostArray x = far_from_zero({2, 3, 2}), y = real({2, 3, 2}, -1, 1);
  expect_defined([](const Tensor& t) { return ops::normalize(t); }, x,
                 [](const HostArray& at) {
                   Elements directions;
                   for (size_t i = 0; i < at.values.size(); ++i) {
                     directions.push_back(at.values[i] / norm_of(line_of(at, i / 6, i % 2, 1), 2));
                   }
                   return directions;
                 });
  const Tensor other = to_tensor(y);
  expect_defined([&](const Tensor& t) { return ops::cosine_similarity(t, other); }, x,
                 [&](const HostArray& at) {
                   Elements cosines;
                   for (size_t i = 0; i < 4; ++i) {
                     const Elements a = line_of(at, i / 2, i % 2, 1),
                                    b = line_of(y, i / 2, i % 2, 1);
                     const double dot = std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
                     cosines.push_back(dot / norm_of(a, 2) / norm_of(b, 2));
                   }
                   return cosines;
                 });
}

// More than f16 can hold, were the squares summed in it.
TEST(DistanceTest, OfNarrowFloatsAreComputedInF32) {
  const Tensor x = Tensor::full({3, 3}, 300, DType::kF16);
  EXPECT_EQ(ops::norm(x).dtype(), DType::kF16);
  EXPECT_EQ(ops::norm(x).item<float>(), 900);
  EXPECT_NEAR(ops::normalize(x).to_host<float>()[0], 1 / std::sqrt(3.0), 1e-3);
  EXPECT_EQ(ops::cosine_similarity(x, x).to_host<float>(), (std::vector<float>{1, 1, 1}));
}

TEST(DistanceTest, NamesTheLineOfTheCall) {
  const auto all = [](const std::vector<Tensor>& in) {
    return std::vector<Tensor>{ops::norm(in[0], 3), ops::normalize(in[0]),
                               ops::cosine_similarity(in[0], in[0])};
  };
  const Program program = trace(all, {{DType::kBF16, {2, 3}}});
  for (const Equation& equation : program.equations) {
    EXPECT_STREQ(equation.where.file, __FILE__) << equation.primitive;
  }
}

}  // namespace
}  // namespace ballast::tests
