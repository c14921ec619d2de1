#include "kernels/test_support.h"

namespace ballast::kernels::testing {
namespace {

const int64_t kSizes[] = {0, 1, 7, 16, 100, 4096, 100003};

TEST(Optimizer, SgdInPlaceAndApart) {
  for (int64_t n : kSizes) {
    if (is_too_large(n)) continue;
    const HostTensor param = random_f32({n}, 1), grad = random_f32({n}, 2), rate = f32({}, {0.03f});
    const auto p = param.as<float>(), g = grad.as<float>();
    for (DeviceClass c : kClasses) {
      for (int target : {-1, 0}) {
        const auto got =
            run_plan(plan_sgd(c, n), {param, grad, rate}, param.type, target).as<float>();
        for (int64_t i = 0; i < n; ++i) ASSERT_FLOAT_EQ(got[i], p[i] - 0.03f * g[i]) << n;
      }
    }
  }
}

TEST(Optimizer, MomentumInPlaceAndApart) {
  for (int64_t n : kSizes) {
    if (is_too_large(n)) continue;
    const HostTensor param = random_f32({n}, 3), accum = random_f32({n}, 4),
                     grad = random_f32({n}, 5), rate = f32({}, {0.01f}), momentum = f32({}, {0.9f});
    const auto p = param.as<float>(), a = accum.as<float>(), g = grad.as<float>();
    for (DeviceClass c : kClasses) {
      for (bool nesterov : {false, true}) {
        const Plan plan = plan_momentum(c, n, nesterov);
        EXPECT_TRUE(same_launches(plan, plan_momentum(c, n, nesterov)));
        for (const std::vector<int>& targets : {std::vector<int>{-1, -1}, std::vector<int>{0, 1}}) {
          const auto got = run_plan(plan, {param, accum, grad, rate, momentum},
                                    {param.type, accum.type}, targets);
          const auto new_param = got[0].as<float>(), new_accum = got[1].as<float>();
          for (int64_t i = 0; i < n; ++i) {
            const double want_accum = 0.9f * double{a[i]} + g[i];
            const double step = nesterov ? g[i] + 0.9f * want_accum : want_accum;
            ASSERT_NEAR(new_accum[i], want_accum, 1e-6) << class_name(c) << " " << n;
            ASSERT_NEAR(new_param[i], p[i] - 0.01f * step, 1e-6) << class_name(c) << " " << n;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace ballast::kernels::testing
