// nn's initializers: moments, bounds, the seed.
#include "frontend/nn/initializer.h"
#include "frontend/test_support.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace ballast::tests {
namespace {

using testing::Each;
using testing::HasSubstr;

struct Drawn {
  double mean = 0, variance = 0, low = 0, high = 0;

  explicit Drawn(const nn::Initializer& make) {
    set_seed(3);
    const std::vector<float> values = make({40, 30, 3, 3}).to_host<float>();
    for (float value : values) mean += value / static_cast<double>(values.size());
    for (float value : values) variance += std::pow(value - mean, 2) / values.size();
    low = *std::min_element(values.begin(), values.end());
    high = *std::max_element(values.begin(), values.end());
  }
};

TEST(InitializerTest, HaveTheirMomentsAndBounds) {
  const double fan_in = 30 * 9, fan_out = 40 * 9;
  auto expect_variance = [](const nn::Initializer& make, double variance, bool is_uniform) {
    const Drawn drawn(make);
    EXPECT_NEAR(drawn.mean, 0, 0.05 * std::sqrt(variance));
    EXPECT_NEAR(drawn.variance / variance, 1, 0.05);
    const double bound = std::sqrt(3 * variance);
    if (is_uniform) {
      EXPECT_LE(std::max(drawn.high, -drawn.low), bound);
    }
    EXPECT_GT(drawn.high, 0.98 * bound);
  };
  expect_variance(nn::Uniform(0.3), 0.03, true);
  expect_variance(nn::Normal(0.2), 0.04, false);
  expect_variance(nn::XavierUniform(), 2 / (fan_in + fan_out), true);
  expect_variance(nn::XavierNormal(3), 18 / (fan_in + fan_out), false);
  expect_variance(nn::HeUniform(std::sqrt(5.0)), 1 / (3 * fan_in), true);
  expect_variance(nn::HeNormal(0, "fan_out"), 2 / fan_out, false);
  expect_variance(nn::HeNormal(0, "fan_in", "tanh"), 25 / (9 * fan_in), false);
  const Drawn truncated(nn::TruncatedNormal(0.5, 1));
  EXPECT_NEAR(truncated.mean, 1, 0.02);
  EXPECT_GE(truncated.low, 0);
  EXPECT_LE(truncated.high, 2);
  EXPECT_NEAR(truncated.variance / 0.25, 0.774, 0.03);  // of a normal cut at two deviations
  EXPECT_THAT(nn::initializer_named("ones")({3}).to_host<float>(), Each(1.0f));
  EXPECT_THAT(nn::Constant(-2)({3}).to_host<float>(), Each(-2.0f));
}

TEST(InitializerTest, FollowTheSeed) {
  auto draw = [] {
    set_seed(11);
    return nn::HeNormal()({3, 4}).to_host<float>();
  };
  EXPECT_EQ(draw(), draw());
}

TEST(InitializerTest, ErrorsNameWhatWasGiven) {
  EXPECT_THAT(message_of([] { nn::initializer_named("he"); }), HasSubstr("\"he\" is not one of"));
  EXPECT_THAT(message_of([] { nn::HeNormal(0, "in"); }), HasSubstr("mode is \"in\""));
  EXPECT_THAT(message_of([] { nn::HeNormal(0, "fan_in", "x"); }), HasSubstr("nonlinearity"));
  EXPECT_THAT(message_of([] { nn::XavierUniform()({3}); }), HasSubstr("the shape is [3]"));
  EXPECT_THAT(message_of([] { nn::TruncatedNormal(1, 0, 2, -2); }), HasSubstr("bounds are 2"));
}

}  // namespace
}  // namespace ballast::tests
