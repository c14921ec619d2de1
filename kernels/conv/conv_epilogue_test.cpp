// What follows a convolution in its own launch.
#include "kernels/conv/conv_reference.h"

#include <vector>

namespace ballast::kernels::testing {
namespace {

void check_epilogue(const ConvConfig& c, const ConvEpilogue& e) {
  const int64_t plane = c.out_h() * c.out_w();
  const HostTensor x = random_f32(x_shape(c), 1), w = random_f32(w_shape(c), 2),
                   bias = random_f32({c.out_channels}, 4), scale = random_f32({c.out_channels}, 5),
                   shift = random_f32({c.out_channels}, 6), residual = random_f32(y_shape(c), 7);
  for (DeviceClass d : device_classes()) {
    if (is_too_slow(d, products_of(c))) continue;
    std::vector<float> want = run_plan(plan_conv2d(d, c, {}), {x, w}, residual.type).as<float>();
    const auto b = bias.as<float>(), sc = scale.as<float>(), sh = shift.as<float>(),
               r = residual.as<float>();
    for (size_t i = 0; i < want.size(); ++i) {
      const int64_t o = static_cast<int64_t>(i) / plane % c.out_channels;
      volatile float v = want[i];  // each step rounds
      if (e.has_bias) v = v + b[o];
      if (e.has_scale) v = v * sc[o];
      if (e.has_scale) v = v + sh[o];
      if (e.has_residual) v = v + r[i];
      want[i] = e.has_relu && v <= 0 ? 0.0f : float{v};
    }
    std::vector<HostTensor> inputs{x, w};
    if (e.has_bias) inputs.push_back(bias);
    if (e.has_scale) inputs.insert(inputs.end(), {scale, shift});
    if (e.has_residual) inputs.push_back(residual);
    const auto got = run_plan(plan_conv2d(d, c, e), inputs, residual.type).as<float>();
    size_t wrong = 0;
    for (size_t i = 0; i < got.size(); ++i) wrong += got[i] != want[i];
    EXPECT_EQ(wrong, 0u) << class_name(d) << " " << name_of(c);
  }
}

// Bit for bit what the separate ops give.
TEST(Conv, EpiloguesEqualSeparateSteps) {
  const std::vector<ConvEpilogue> all = {{true, false, false, false}, {false, true, false, true},
                                         {true, true, true, true},    {false, false, true, false},
                                         {false, false, false, true}, {true, false, true, true},
                                         {true, false, false, true},  {false, true, false, false}};
  std::vector<ConvConfig> configs = {make({1, 2, 5, 4}, 3, 3, 1, 1)};
  if (!is_too_large(1 << 20)) {
    configs.push_back(make({2, 20, 14, 14}, 65, 3, 1, 1));
    configs.push_back(make({2, 64, 11, 19}, 64, 3, 1, 1));
    configs.push_back(make({2, 132, 7, 7}, 130, 3, 1, 1));
    configs.push_back(make({2, 24, 14, 16}, 24, 3, 1, 1, 1, 24));
    configs.push_back(make({2, 12, 16, 17}, 12, 3, 1, 1, 1, 12));
    configs.push_back(make({2, 6, 8, 72}, 6, 3, 1, 1, 1, 6));
    configs.push_back(make({2, 12, 36, 40}, 12, 7, 1, 3, 1, 12));
    configs.push_back(make({1, 40, 16, 16}, 70, 1));
    configs.push_back(make({8, 11, 5, 18}, 64, 3, 1, 1));
    configs.push_back(make({2, 300, 7, 9}, 20, 1));
    configs.push_back(make({3, 6, 14, 14}, 15, 5));  // tiles of rows
    configs.push_back(make({1, 6, 20, 30}, 16, 3));
    configs.push_back(make({2, 200, 6, 7}, 64, 1));
    configs.push_back(make({2, 20, 9, 23}, 64, 1));  // a bias of rows, a narrow panel
    configs.push_back(make({2, 70, 16, 20}, 60, 1));
    configs.push_back(make({3, 300, 7, 7}, 40, 1));    // samples side by side
    configs.push_back(make({2, 100, 14, 14}, 60, 1));  // tiles of points
    configs.push_back(make({2, 24, 8, 8}, 36, 1, 1, 0, 1, 3));
    configs.push_back(make({2, 64, 5, 6}, 64, 3, 1, 1));  // GPUs: in parts
    configs.push_back(make({2, 512, 4, 6}, 12, 1));       // and a product, with some of them
    configs.push_back(make({2, 3, 32, 40}, 100, 8, 8));
    configs.push_back(make({2, 3, 16, 24}, 20, 4, 4));  // pixels of windows as channels
    configs.push_back(make({2, 4, 16, 24}, 48, 8, 8, 0, 1, 2));
  }
  for (const ConvConfig& c : configs) {
    for (const ConvEpilogue& e : all) check_epilogue(c, e);
  }
}

}  // namespace
}  // namespace ballast::kernels::testing
