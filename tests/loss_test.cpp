// The losses that are written with other ops, against their definitions in double: values, first
// derivatives, and where one is easily wrong: zero, ties, far out.
#include "frontend/ballast_frontend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

namespace ballast::tests {
namespace {

using Definition = std::function<double(double x, double t)>;
using Loss = std::function<Tensor(const Tensor&, const Tensor&, const std::string&)>;

struct Row {
  const char* name;
  Loss loss;
  Definition value, slope;
  std::vector<float> x, t;
};

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double softplus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x))); }

constexpr double kWeight = 0.75, kPosWeight = 3;

ops::BinaryLossOptions weighted(const std::string& reduction) {
  return {reduction, Tensor::scalar(kWeight), Tensor::full({1}, kPosWeight)};
}

const std::vector<Row>& rows() {
  static const std::vector<float> points = {-2.5f, -0.4f, 0.0f, 0.3f, 1.75f, 6},
                                  targets = {1, 0.5f, 0.25f, -1, 1.5f, 2};
  static const std::vector<Row> all = {
      {"mse", [](auto& x, auto& t, auto& r) { return ops::mse_loss(x, t, r); },
       [](double x, double t) { return (x - t) * (x - t); },
       [](double x, double t) { return 2 * (x - t); }, points, targets},
      {"l1", [](auto& x, auto& t, auto& r) { return ops::l1_loss(x, t, r); },
       [](double x, double t) { return std::fabs(x - t); },
       [](double x, double t) { return x > t ? 1.0 : -1.0; }, points, targets},
      {"smooth_l1", [](auto& x, auto& t, auto& r) { return ops::smooth_l1_loss(x, t, 0.5, r); },
       [](double x, double t) {
         const double d = std::fabs(x - t);
         return d < 0.5 ? d * d : d - 0.25;
       },
       [](double x, double t) {
         return std::fabs(x - t) < 0.5 ? 2 * (x - t) : (x > t ? 1.0 : -1.0);
       },
       points, targets},
      {"huber", [](auto& x, auto& t, auto& r) { return ops::huber_loss(x, t, 2, r); },
       [](double x, double t) {
         const double d = std::fabs(x - t);
         return d <= 2 ? 0.5 * d * d : 2 * (d - 1);
       },
       [](double x, double t) { return std::fabs(x - t) <= 2 ? x - t : (x > t ? 2.0 : -2.0); },
       points, targets},
      {"bce",
       [](auto& x, auto& t, auto& r) { return ops::binary_cross_entropy(x, t, r); },
       [](double x, double t) { return -(t * std::log(x) + (1 - t) * std::log(1 - x)); },
       [](double x, double t) { return (x - t) / (x * (1 - x)); },
       {0.1f, 0.5f, 0.9f, 0.999f},
       {0, 0.5f, 1, 0.25f}},
      {"bce_with_logits",
       [](auto& x, auto& t, auto& r) { return ops::binary_cross_entropy_with_logits(x, t, r); },
       [](double x, double t) {
         return std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x))) - x * t;
       },
       [](double x, double t) { return sigmoid(x) - t; },
       {-80, -17, -3, 0, 0, 0.5f, 20, 90},
       {1, 0, 0, 1, 0, 0.25f, 1, 0}},
      {"weighted_bce",
       [](auto& x, auto& t, auto& r) { return ops::binary_cross_entropy(x, t, weighted(r)); },
       [](double x, double t) {
         return -kWeight * (kPosWeight * t * std::log(x) + (1 - t) * std::log(1 - x));
       },
       [](double x, double t) { return kWeight * ((1 - t) / (1 - x) - kPosWeight * t / x); },
       {0.1f, 0.5f, 0.9f, 0.999f},
       {0, 0.5f, 1, 0.25f}},
      {"weighted_bce_with_logits",
       [](auto& x, auto& t, auto& r) {
         return ops::binary_cross_entropy_with_logits(x, t, weighted(r));
       },
       [](double x, double t) {
         return kWeight * (kPosWeight * t * softplus(-x) + (1 - t) * softplus(x));
       },
       [](double x, double t) {
         return kWeight * ((1 - t) * sigmoid(x) - kPosWeight * t * sigmoid(-x));
       },
       {-80, -17, -3, 0, 0, 0.5f, 20, 90},
       {1, 0, 0, 1, 0, 0.25f, 1, 0}},
      {"kl_div",
       [](auto& x, auto& t, auto& r) { return ops::kl_div(x, t, r); },
       [](double x, double t) { return t == 0 ? 0 : t * (std::log(t) - x); },
       [](double, double t) { return -t; },
       {-2.5f, -0.4f, 0, -INFINITY, -3},
       {0.5f, 1, 0.25f, 0, 2}},
      {"kl_div_of_logarithms",
       [](auto& x, auto& t, auto& r) { return ops::kl_div(x, t, r, /*log_target=*/true); },
       [](double x, double t) { return std::exp(t) * (t - x); },
       [](double, double t) { return -std::exp(t); },
       {-2.5f, -0.4f, 0, -1, -3},
       {-0.5f, -1, -0.25f, -30, -2}},
  };
  return all;
}

class LossTest : public testing::TestWithParam<Row> {};

TEST_P(LossTest, MatchesItsDefinition) {
  const Row& row = GetParam();
  const auto n = static_cast<int64_t>(row.x.size());
  const Tensor x = Tensor::from_host(row.x, {n}), t = Tensor::from_host(row.t, {n});
  const auto losses = row.loss(x, t, "none").to_host<float>();
  auto total = [&](Tensor at) { return row.loss(at, t, "sum"); };
  const auto slopes = grad(total)(x).to_host<float>();
  double sum = 0;
  for (size_t i = 0; i < row.x.size(); ++i) {
    const double value = row.value(row.x[i], row.t[i]), slope = row.slope(row.x[i], row.t[i]);
    EXPECT_NEAR(losses[i], value, 1e-6 + 2e-6 * std::fabs(value)) << i;
    EXPECT_NEAR(slopes[i], slope, 1e-6 + 3e-5 * std::fabs(slope)) << i;
    sum += value;
  }
  EXPECT_NEAR(row.loss(x, t, "sum").item<float>(), sum, 1e-5 * std::fabs(sum));
  EXPECT_NEAR(row.loss(x, t, "mean").item<float>(), sum / static_cast<double>(n),
              1e-5 * std::fabs(sum));
  EXPECT_THROW(row.loss(x, t, "average"), Error);
}

INSTANTIATE_TEST_SUITE_P(All, LossTest, testing::ValuesIn(rows()),
                         [](const auto& row) { return std::string(row.param.name); });

TEST(LossTest, ASureMistakeIsFinite) {
  const Tensor x = Tensor::from_host<float>({0, 1}, {2}), t = Tensor::from_host<float>({1, 0}, {2});
  EXPECT_THAT(ops::binary_cross_entropy(x, t, "none").to_host<float>(),
              testing::ElementsAre(100, 100));
}

TEST(LossTest, SureAnswersHaveFiniteGradients) {
  const Tensor p = Tensor::from_host<float>({0, 0, 1, 1}, {4});
  const Tensor t = Tensor::from_host<float>({0, 1, 0, 1}, {4});
  auto f = [&](Tensor x) { return ops::binary_cross_entropy(x, t, "sum"); };
  EXPECT_THAT(grad(f)(p).to_host<float>(), testing::ElementsAre(1, 0, 0, -1));
}

TEST(LossTest, LogitsLossKeepsWhatIsSmall) {
  const Tensor x = Tensor::from_host<float>({-17, 17}, {2}),
               t = Tensor::from_host<float>({0, 1}, {2});
  for (float loss : ops::binary_cross_entropy_with_logits(x, t, "none").to_host<float>()) {
    EXPECT_NEAR(loss, 4.1399377e-8, 1e-13);
  }
}

// One weight for each of the columns; the mean is over all elements.
TEST(LossTest, WeightsBroadcast) {
  const Tensor x = Tensor::from_host<float>({0.5f, -1, 2, 0.25f, 3, -2}, {2, 3}),
               t = Tensor::from_host<float>({1, 0, 0.5f, 0, 1, 1}, {2, 3}),
               columns = Tensor::from_host<float>({1, 2, 0}, {3}),
               rows = Tensor::from_host<float>({4, 0.5f}, {2, 1});
  const auto xs = x.to_host<float>(), ts = t.to_host<float>();
  double sum = 0;
  for (size_t i = 0; i < xs.size(); ++i) {
    const double weight = std::vector<double>{1, 2, 0}[i % 3], pos = i < 3 ? 4 : 0.5;
    sum += weight * (pos * ts[i] * softplus(-xs[i]) + (1 - ts[i]) * softplus(xs[i]));
  }
  EXPECT_NEAR(nn::BCEWithLogitsLoss({"sum", columns, rows})(x, t).item<float>(), sum, 1e-5);
  EXPECT_NEAR(nn::BCEWithLogitsLoss({"mean", columns, rows})(x, t).item<float>(), sum / 6, 1e-5);
  const Tensor p = ops::sigmoid(x);
  EXPECT_NEAR(nn::BCELoss({"sum", columns, rows})(p, t).item<float>(), sum, 1e-4);
}

TEST(LossTest, KlDivergenceByBatch) {
  const Tensor x = Tensor::zeros({2, 3}), t = Tensor::full({2, 3}, 0.5);
  EXPECT_NEAR(ops::kl_div(x, t, "batchmean").item<float>(), 6 * 0.5 * std::log(0.5) / 2, 1e-6);
  EXPECT_THROW(ops::kl_div(Tensor::scalar(0), Tensor::scalar(1), "batchmean"), Error);
}

TEST(LossTest, NanIsNoProbability) {
  const Tensor x = Tensor::from_host<float>({NAN, 0.5f, NAN, 0}, {4}),
               t = Tensor::from_host<float>({0, 1, 1, 1}, {4});
  const auto losses = ops::binary_cross_entropy(x, t, "none").to_host<float>();
  EXPECT_TRUE(std::isnan(losses[0]) && std::isnan(losses[2]));
  EXPECT_NEAR(losses[1], std::log(2.0), 1e-6);
  EXPECT_EQ(losses[3], 100.0f);
}

TEST(LossTest, SecondDerivativeOfLogitsLossAtZero) {
  auto f = [](Tensor x) { return ops::binary_cross_entropy_with_logits(x, Tensor::scalar(1)); };
  EXPECT_NEAR(grad(grad(f))(Tensor::scalar(0)).item<float>(), 0.25, 1e-6);
}

// The classes of i64 labels are those of i32, and what has more bits is none.
// Of lines over all of the axes, in any order of these.
TEST(SoftmaxTest, OverSeveralAxes) {
  const Tensor x = ops::sin(ops::reshape(ops::arange(0, 120, 1, DType::kF32), {2, 3, 4, 5})) * 3.0;
  const std::vector<std::pair<ops::Axes, ops::Axes>> cases = {
      {{2, 3}, {2, 3}},       {{-1, 0}, {0, 3}},  {{1, 2}, {1, 2}},
      {{3, 1, 0}, {0, 1, 3}}, {{}, {0, 1, 2, 3}}, {{1}, {1}}};
  for (const auto& [axes, all] : cases) {
    const Tensor powers = ops::exp(x), logs = x - ops::logsumexp(x, all, true);
    const auto expected = (powers / ops::reduce_sum(powers, all, true)).to_host<float>(),
               expected_logs = logs.to_host<float>(), got = ops::softmax(x, axes).to_host<float>(),
               got_logs = ops::log_softmax(x, axes).to_host<float>();
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_NEAR(got[i], expected[i], 1e-6) << testing::PrintToString(axes) << " at " << i;
      EXPECT_NEAR(got_logs[i], expected_logs[i], 1e-5)
          << testing::PrintToString(axes) << " at " << i;
    }
    EXPECT_EQ(ops::softmax(ops::zeros_like(x), axes).shape(), x.shape());
  }
  const auto slopes = grad([](Tensor t) {
    return ops::sum(ops::square(ops::softmax(t, {1, 2})));
  })(x);
  const auto of_lines = grad([](Tensor t) {
    const Tensor turned = ops::transpose(t, {0, 3, 1, 2});
    return ops::sum(ops::square(ops::softmax(ops::reshape(turned, {2, 5, 12}))));
  })(x);
  EXPECT_EQ(slopes.to_host<float>(), of_lines.to_host<float>());
  EXPECT_EQ(ops::softmax(Tensor::zeros({2, 0, 3}), {0, 2}).shape(), (Shape{2, 0, 3}));
  EXPECT_EQ(ops::softmax(Tensor::from_host<float>({7}, {}), ops::Axes{}).item<float>(), 1);
  EXPECT_THROW(ops::softmax(x, {0, 4}), Error);
}

TEST(LossTest, LabelsOf64Bits) {
  const Tensor logits = Tensor::from_host<float>({1, 2, -3, 0, 5, 0.5f, 2, 1, 0, 1, 1, 1}, {4, 3});
  const Tensor narrow = Tensor::from_host<int32_t>({2, 0, 1, -1}, {4});
  const Tensor wide = Tensor::from_host<int64_t>({2, 0, (int64_t{1} << 32) + 1, -1}, {4});
  const auto want = ops::softmax_cross_entropy(logits, narrow).to_host<float>();
  const auto got = ops::softmax_cross_entropy(logits, wide).to_host<float>();
  EXPECT_EQ(got[0], want[0]);
  EXPECT_EQ(got[1], want[1]);
  EXPECT_TRUE(std::isnan(got[2]) && std::isnan(got[3]));
  const auto nll = ops::nll_loss(logits, wide, "none").to_host<float>();
  EXPECT_EQ(nll, (std::vector<float>{3, -0.0f, 0, 0}));
  auto f = [&](Tensor x) {
    return ops::sum(ops::slice(ops::softmax_cross_entropy(x, wide), {0}, {2}));
  };
  auto h = [&](Tensor x) {
    return ops::sum(ops::slice(ops::softmax_cross_entropy(x, narrow), {0}, {2}));
  };
  const auto a = grad(f)(logits).to_host<float>(), b = grad(h)(logits).to_host<float>();
  for (size_t i = 0; i < 6; ++i) EXPECT_EQ(a[i], b[i]);
}

TEST(LossTest, NllOfLogSoftmaxIsCrossEntropy) {
  const Tensor logits = Tensor::from_host<float>({1, 2, -3, 0, 5, 0.5f}, {2, 3});
  const Tensor labels = Tensor::from_host<int32_t>({2, 0}, {2});
  const auto want = ops::softmax_cross_entropy(logits, labels).to_host<float>();
  const auto got = ops::nll_loss(ops::log_softmax(logits), labels, "none").to_host<float>();
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-6);
  auto f = [&](Tensor x) { return ops::nll_loss(ops::log_softmax(x), labels, "sum"); };
  auto h = [&](Tensor x) { return ops::sum(ops::softmax_cross_entropy(x, labels)); };
  const auto a = grad(f)(logits).to_host<float>(), b = grad(h)(logits).to_host<float>();
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-6);
  EXPECT_THROW(ops::nll_loss(logits, logits), Error);
  EXPECT_THROW(ops::smooth_l1_loss(logits, logits, 0), Error);
  EXPECT_THROW(ops::huber_loss(logits, logits, -1), Error);
}

TEST(StatisticsTest, VarianceDeviationLogSumExp) {
  const Tensor x = Tensor::from_host<float>({1, 2, 4, -1, 0, 1}, {2, 3});
  EXPECT_NEAR(ops::reduce_var(x).item<float>(), 2.4722222, 1e-6);
  EXPECT_NEAR(ops::reduce_var(x, {}, 1).item<float>(), 2.9666667, 1e-6);
  const auto deviations = ops::reduce_std(x, {1}, 1).to_host<float>();
  EXPECT_NEAR(deviations[0], std::sqrt(7.0 / 3), 1e-6);
  EXPECT_NEAR(deviations[1], 1, 1e-6);
  const auto sums = ops::logsumexp(x * 300.0, {1}).to_host<float>();
  EXPECT_NEAR(sums[0], 1200, 1e-3);
  EXPECT_NEAR(sums[1], 300, 1e-3);
  const Tensor none = Tensor::from_host<float>({-INFINITY, -INFINITY}, {2});
  EXPECT_EQ(ops::logsumexp(none).item<float>(), -INFINITY);
  EXPECT_EQ(ops::logsumexp(x, {0}, true).shape(), (Shape{1, 3}));
  auto f = [](Tensor t) { return ops::logsumexp(t); };
  const auto slopes = grad(f)(x).to_host<float>();
  const auto shares = ops::softmax(ops::reshape(x, {6})).to_host<float>();
  for (size_t i = 0; i < 6; ++i) EXPECT_NEAR(slopes[i], shares[i], 1e-6);
}

TEST(StatisticsTest, WithoutFreedomTheVarianceIsInfinite) {
  const Tensor x = Tensor::from_host<float>({1, 2, 4}, {3});
  EXPECT_EQ(ops::reduce_var(x, {}, 3).item<float>(), INFINITY);
  EXPECT_EQ(ops::reduce_var(x, {}, 4).item<float>(), INFINITY);
}

// More terms than f16 can count.
TEST(StatisticsTest, OfNarrowFloatsAreComputedInF32) {
  std::vector<float> signs(100000, 1);
  for (size_t i = 0; i < signs.size(); i += 2) signs[i] = -1;
  const Tensor x = Tensor::from_host(signs, {100000}, DType::kF16);
  EXPECT_NEAR(ops::reduce_var(x * 2.0).item<float>(), 4, 1e-2);
  EXPECT_NEAR(ops::reduce_std(x * 300.0).item<float>(), 300, 1);
  EXPECT_NEAR(ops::logsumexp(x - x).item<float>(), std::log(1e5), 1e-2);
  auto f = [](Tensor t) { return ops::mean(t * t) * 1000.0; };
  EXPECT_NEAR(grad(f)(x).to_host<float>()[1], 0.02, 1e-5);
  const Tensor logits = Tensor::zeros({70000, 4}, DType::kF16);
  const Tensor labels = Tensor::zeros({70000}, DType::kI32);
  EXPECT_NEAR(nn::CrossEntropyLoss("mean", 0, -100)(logits, labels).item<float>(), std::log(4.0),
              1e-3);
}

TEST(StatisticsTest, SumsOfSmallTypesCountInI32) {
  const Tensor bytes = Tensor::from_host<uint8_t>({200, 100, 50}, {3});
  EXPECT_EQ(ops::reduce_sum(bytes).item<int32_t>(), 350);
  const Tensor floats = ops::cast(bytes, DType::kF32);
  const Tensor truths = ops::greater(floats, floats);
  EXPECT_EQ(ops::reduce_sum(ops::logical_not(truths)).item<int32_t>(), 3);
  EXPECT_EQ(ops::reduce_prod(bytes).item<int32_t>(), 1000000);
  EXPECT_EQ(ops::cumsum(bytes, 0).to_host<int32_t>(), (std::vector<int32_t>{200, 300, 350}));
}

TEST(StatisticsTest, ExtremaOfTruthValuesHavePlaces) {
  const Tensor truths = Tensor::from_host<bool>({false, true, true, true}, {2, 2});
  EXPECT_EQ(ops::argmax(truths, 1).to_host<int32_t>(), (std::vector<int32_t>{1, 0}));
  EXPECT_EQ(ops::argmin(truths, 0).to_host<int32_t>(), (std::vector<int32_t>{0, 0}));
}

TEST(StatisticsTest, MeansOfIntegersAreFloats) {
  const Tensor whole = Tensor::from_host<int32_t>({1, 2, 4, -1, 0, 1}, {2, 3});
  const Tensor truths = Tensor::from_host<bool>({true, false, false, true}, {4});
  for (DType dtype : {DType::kI32, DType::kI64}) {
    const Tensor x = ops::cast(whole, dtype);
    EXPECT_EQ(ops::mean(x, {0}).to_host<float>(), (std::vector<float>{0, 1, 2.5}));
    EXPECT_NEAR(ops::reduce_var(x).item<float>(), 2.4722222, 1e-6);
    EXPECT_NEAR(ops::reduce_std(x, {1}, 1).to_host<float>()[1], 1, 1e-6);
    EXPECT_NEAR(ops::logsumexp(x, {1}).to_host<float>()[0], 4.1698460, 1e-6);
  }
  EXPECT_EQ(ops::mean(Tensor::from_host<uint8_t>({200, 101}, {2})).item<float>(), 150.5f);
  EXPECT_EQ(ops::mean(truths).item<float>(), 0.5f);
}

TEST(StatisticsTest, QuotientsOfIntegersAreFloats) {
  const Tensor a = Tensor::from_host<int32_t>({7, -7, 1, 0}, {4}),
               b = Tensor::from_host<int32_t>({2, 2, 0, 0}, {4});
  const auto quotients = (a / b).to_host<float>();
  EXPECT_EQ(quotients[0], 3.5f);
  EXPECT_EQ(quotients[1], -3.5f);
  EXPECT_EQ(quotients[2], std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(quotients[3]));
  EXPECT_EQ((a / 2).to_host<float>()[0], 3.5f);
  EXPECT_EQ((7 / b).to_host<float>()[0], 3.5f);
  EXPECT_EQ((a / 0.5).to_host<float>()[0], 14.0f);
}

}  // namespace
}  // namespace ballast::tests
