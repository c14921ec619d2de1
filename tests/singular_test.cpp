// Gradients where a formula taken literally is 0 * infinity.
#include "frontend/ballast_frontend.h"

#include <gtest/gtest.h>

#include <cmath>

namespace ballast::tests {
namespace {

TEST(SingularTest, SlopesAreTheirLimits) {
  using Values = std::vector<float>;
  const auto slopes = [](auto f, const Values& at) {
    const Tensor x = Tensor::from_host(at, {static_cast<int64_t>(at.size())});
    return grad([&](Tensor t) { return ops::sum(f(t)); })(x).template to_host<float>();
  };
  const auto curvature = [&](auto f, const Values& at) {
    return slopes(grad([&](Tensor t) { return ops::sum(f(t)); }), at);
  };
  const auto power = [](double b) { return [b](Tensor t) { return ops::pow(t, b); }; };
  EXPECT_EQ(slopes(power(0), {0, 2}), (Values{0, 0}));
  EXPECT_EQ(curvature(power(1), {0, 2}), (Values{0, 0}));
  EXPECT_EQ(curvature(power(2), {0, 2}), (Values{2, 2}));
  EXPECT_EQ(slopes([](Tensor t) { return ops::silu(t); }, {INFINITY, -INFINITY}), (Values{1, 0}));
  for (const auto form : {ops::Gelu::kTanh, ops::Gelu::kExact}) {
    EXPECT_EQ(curvature([=](Tensor t) { return ops::gelu(t, form); }, {1e10f, -5e19f, 3e38f}),
              (Values{0, 0, 0}));
  }
  EXPECT_EQ(slopes([](Tensor t) { return ops::global_norm({t, t}); }, {0, 0}), (Values{0, 0}));
  auto angle = grad([](Tensor b, Tensor a) { return ops::sum(ops::atan2(b, a)); }, {0, 1});
  for (float r : {0.0f, 1e-25f, 1.0f, 1e25f}) {
    const float slope = r == 0 ? 0 : 0.5f / r;
    EXPECT_FLOAT_EQ(angle(Tensor::scalar(r), Tensor::scalar(r))[0].item<float>(), slope);
    EXPECT_FLOAT_EQ(angle(Tensor::scalar(r), Tensor::scalar(r))[1].item<float>(), -slope);
  }
}

}  // namespace
}  // namespace ballast::tests
