#include "kernels/conv/winograd/conv_dilated.h"
#include "kernels/conv/conv_reference.h"
#include "kernels/plan/registers.h"

namespace ballast::kernels::testing {
namespace {

bool are_all_dilated(const ConvConfig& c) {
  return is_dilated(c, {}) && is_dilated_input_grad(c) && is_dilated_weight_grad(c);
}

TEST(ConvDilatedLarge, PhasesOfPlanes) {
  if (!runs_cpu_class()) GTEST_SKIP() << "kernels of CPUs";
  const auto check_phases = [](const ConvConfig& c) {
    EXPECT_TRUE(are_all_dilated(c)) << name_of(c);
    check(c);
  };
  check_phases(make({2, 64, 16, 28}, 64, 3, 1, 2, 2));       // phases of one size
  check_phases(make({1, 64, 17, 33}, 64, 3, 1, 2, 2));       // some have a row, a column more
  check_phases(make({1, 64, 16, 43}, 64, 3, 1, 3, 3));       // columns alone
  check_phases(make({1, 64, 40, 48}, 64, 3, 1, 0, 3));       // rows, without padding
  check_phases(make({1, 128, 25, 31}, 128, 3, 1, 4, 4));     // rows less than a vector
  check_phases(make({1, 128, 29, 29}, 128, 3, 1, 4, 4));     // copied an element at a time
  check_phases(make({1, 128, 16, 24}, 128, 3, 1, 2, 2, 2));  // groups
  ConvConfig lopsided = make({1, 64, 15, 40}, 64, 3, 1, 0, 2);
  lopsided.dilation_h = 1;
  lopsided.top = 1, lopsided.bottom = 3, lopsided.left = 4, lopsided.right = 1;
  check_phases(lopsided);
}

TEST(ConvDilatedLarge, EpiloguesOfPhases) {
  if (!runs_cpu_class()) GTEST_SKIP() << "kernels of CPUs";
  const ConvConfig c = make({1, 64, 15, 20}, 64, 3, 1, 2, 2);
  const ConvEpilogue e{true, true, false, true};
  ASSERT_TRUE(is_dilated(c, e));
  EXPECT_FALSE(is_dilated(c, {false, false, true, false}));
  const int64_t plane = c.out_h() * c.out_w();
  const HostTensor x = random_f32(x_shape(c), 1), w = random_f32(w_shape(c), 2),
                   bias = random_f32({64}, 4), scale = random_f32({64}, 5),
                   shift = random_f32({64}, 6);
  const TensorType type{DType::kF32, y_shape(c)};
  std::vector<float> want = run_plan(plan_conv2d_dilated(c, {}), {x, w}, type).as<float>();
  const auto b = bias.as<float>(), sc = scale.as<float>(), sh = shift.as<float>();
  for (size_t i = 0; i < want.size(); ++i) {
    const size_t o = i / plane;
    volatile float v = want[i] + b[o];  // each step rounds
    v = v * sc[o];
    v = v + sh[o];
    want[i] = v <= 0 ? 0.0f : float{v};
  }
  EXPECT_EQ(
      run_plan(plan_conv2d(DeviceClass::kCpu, c, e), {x, w, bias, scale, shift}, type).as<float>(),
      want);
}

TEST(ConvDilated, IsTakenWhereItIsFaster) {
  for (int64_t registers : {kWideRegisters, kNarrowRegisters}) {
    const RegistersScope scope(registers);
    EXPECT_TRUE(are_all_dilated(make({8, 64, 28, 28}, 64, 3, 1, 2, 2)));
    EXPECT_TRUE(is_dilated(make({1, 256, 33, 33}, 256, 3, 1, 6, 6), {}));
    EXPECT_FALSE(is_dilated(make({8, 64, 28, 28}, 64, 3, 1, 4, 4), {}));  // too much is copying
    EXPECT_FALSE(is_dilated(make({8, 64, 28, 28}, 64, 3, 1, 1, 2), {}));  // other pixels meet
    EXPECT_FALSE(is_dilated(make({8, 64, 28, 28}, 64, 3, 1, 1, 1), {}));
    EXPECT_FALSE(is_dilated(make({8, 64, 28, 28}, 64, 3, 2, 2, 2), {}));
    EXPECT_FALSE(is_dilated(make({8, 3, 56, 56}, 64, 3, 1, 2, 2), {}));
  }
}

}  // namespace
}  // namespace ballast::kernels::testing
