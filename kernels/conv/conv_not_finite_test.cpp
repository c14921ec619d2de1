// Infinities and NaN: where they may get to, and where not.
#include "kernels/conv/conv_reference.h"

#include <cmath>
#include <string>
#include <vector>

namespace ballast::kernels::testing {
namespace {

// For every element of x, window of y and tap of a group's channel, taps of the phases beside the
// window included: f(offset in x or -1, offset in w or -1, offset in y or -1), if one is -1.
template <class F>
void for_each_zero(const ConvConfig& c, const F& f) {
  const int64_t group_in = c.in_channels / c.groups, group_out = c.out_channels / c.groups;
  const auto inside = [](int64_t at, int64_t extent) { return at >= 0 && at < extent; };
  // Corners of windows: all whose taps reach x.
  const int64_t reach_h = (c.kernel_h + c.stride_h) * c.dilation_h,
                reach_w = (c.kernel_w + c.stride_w) * c.dilation_w;
  for (int64_t cy = -reach_h; cy < c.height + reach_h; ++cy) {
    for (int64_t cx = -reach_w; cx < c.width + reach_w; ++cx) {
      const int64_t y = cy + c.top, x = cx + c.left;
      const bool is_y = y % c.stride_h == 0 && x % c.stride_w == 0 &&
                        inside(y / c.stride_h, c.out_h()) && inside(x / c.stride_w, c.out_w());
      for (int64_t ky = 1 - c.stride_h; ky < c.kernel_h + c.stride_h - 1; ++ky) {
        for (int64_t kx = 1 - c.stride_w; kx < c.kernel_w + c.stride_w - 1; ++kx) {
          const int64_t iy = cy + ky * c.dilation_h, ix = cx + kx * c.dilation_w;
          const bool is_x = inside(iy, c.height) && inside(ix, c.width);
          const bool is_w = inside(ky, c.kernel_h) && inside(kx, c.kernel_w);
          if (is_x + is_w + is_y != 2) continue;
          for (int64_t o = 0; o < c.out_channels; ++o) {
            for (int64_t i = 0; i < c.batch * group_in; ++i) {
              const int64_t n = i / group_in, ci = i % group_in;
              const int64_t channel = n * c.in_channels + o / group_out * group_in + ci;
              f(is_x ? (channel * c.height + iy) * c.width + ix : -1,
                is_w ? ((o * group_in + ci) * c.kernel_h + ky) * c.kernel_w + kx : -1,
                is_y ? ((n * c.out_channels + o) * c.out_h() + y / c.stride_h) * c.out_w() +
                           x / c.stride_w
                     : -1);
            }
          }
        }
      }
    }
  }
}

// Infinities of both signs, one perhaps at the end of a row, and a NaN, in one operand at a time.
void check_not_finite(const ConvConfig& c, bool ends_row = false) {
  const Shape shapes[] = {x_shape(c), w_shape(c), y_shape(c)};
  for (int which = 0; which < 3; ++which) {
    std::vector<std::vector<float>> operands;
    for (int i = 0; i < 3; ++i) operands.push_back(random_f32(shapes[i], i + 1).as<float>());
    std::vector<float>& marked = operands[which];
    const size_t middle = marked.size() / 2, width = shapes[which].back();
    marked[ends_row ? (middle / width + 1) * width - 1 : middle] = INFINITY;
    marked[marked.size() / 3] = -INFINITY;
    marked[marked.size() - 1] = NAN;
    const std::vector<float>&x = operands[0], &w = operands[1], &dy = operands[2];
    Marked y(dy.size()), dx(x.size()), dw(w.size());
    for_each_product(c, [&](int64_t at_x, int64_t at_w, int64_t at_y) {
      y.value[at_y] += double{x[at_x]} * w[at_w];
      dx.value[at_x] += double{dy[at_y]} * w[at_w];
      dw.value[at_w] += double{dy[at_y]} * x[at_x];
    });
    for_each_zero(c, [&](int64_t at_x, int64_t at_w, int64_t at_y) {
      if (at_x < 0 && !std::isfinite(w[at_w])) y.may_be_nan[at_y] = true;
      if (at_x < 0 && !std::isfinite(dy[at_y])) dw.may_be_nan[at_w] = true;
      if (at_y < 0 && !std::isfinite(w[at_w])) dx.may_be_nan[at_x] = true;
      if (at_y < 0 && !std::isfinite(x[at_x])) dw.may_be_nan[at_w] = true;
      if (at_w < 0 && !std::isfinite(dy[at_y])) dx.may_be_nan[at_x] = true;
    });
    const HostTensor xt = f32(shapes[0], x), wt = f32(shapes[1], w), dyt = f32(shapes[2], dy);
    for (DeviceClass d : device_classes()) {
      if (is_too_slow(d, products_of(c))) continue;
      const std::string what = fmt::format("{} {} operand {}", class_name(d), name_of(c), which);
      if (which != 2) {
        expect_marks(run_plan(plan_conv2d(d, c, {}), {xt, wt}, dyt.type).as<float>(), y,
                     "y of " + what);
      }
      if (which != 0) {
        expect_marks(run_plan(plan_conv2d_input_grad(d, c), {dyt, wt}, xt.type).as<float>(), dx,
                     "dx of " + what);
      }
      if (which != 1) {
        expect_marks(run_plan(plan_conv2d_weight_grad(d, c), {dyt, xt}, wt.type).as<float>(), dw,
                     "dw of " + what);
      }
    }
  }
}

TEST(Conv, WhatIsNotFiniteStaysWithItsProducts) {
  check_not_finite(make({1, 2, 5, 6}, 3, 3, 1, 1));
  check_not_finite(make({1, 2, 6, 8}, 3, 3, 2, 1));
}

TEST(ConvLarge, WhatIsNotFiniteStaysWithItsProducts) {
  check_not_finite(make({2, 7, 9, 17}, 65, 3, 1, 1));           // pixels in the lanes
  check_not_finite(make({8, 11, 1, 17}, 64, 3, 1, 1));          // channels in the lanes
  check_not_finite(make({1, 32, 14, 14}, 32, 3, 2, 1));         // tiles, phases
  check_not_finite(make({1, 20, 16, 32}, 19, 3, 2, 1));         // woven
  check_not_finite(make({1, 6, 31, 31}, 64, 4, 3));             // dy spread by strides
  check_not_finite(make({2, 24, 9, 9}, 36, 2, 3, 0, 1, 3));     // products that are gathered
  check_not_finite(make({2, 24, 8, 8}, 36, 1, 2, 0, 1, 3));     // of pixels that are picked
  check_not_finite(make({2, 3, 12, 12}, 4, 3, 2, 1, 2));        // rows, dilated
  check_not_finite(make({3, 20, 14, 14}, 20, 3, 1, 1, 1, 20));  // depthwise: small squares,
  check_not_finite(make({3, 20, 7, 7}, 20, 3, 1, 1, 1, 20));
  check_not_finite(make({3, 20, 8, 8}, 20, 3, 1, 1, 1, 20));
  check_not_finite(make({2, 9, 20, 36}, 9, 3, 2, 1, 1, 9));  // halves,
  check_not_finite(make({2, 9, 10, 36}, 9, 5, 2, 2, 1, 9));
  check_not_finite(make({2, 9, 28, 28}, 9, 3, 2, 1, 1, 9));  // halved squares
  check_not_finite(make({2, 7, 20, 20}, 7, 5, 2, 2, 1, 7));
  for (const bool ends_row : {false, true}) {
    check_not_finite(make({3, 11, 14, 14}, 11, 3, 2, 1, 1, 11), ends_row);
    check_not_finite(make({2, 7, 16, 16}, 7, 3, 2, 1, 1, 7), ends_row);
  }
  check_not_finite(make({3, 11, 14, 14}, 11, 5, 2, 2, 1, 11));
  check_not_finite(make({2, 12, 14, 14}, 12, 5, 2, 2, 1, 12));  // of two planes,
  check_not_finite(make({3, 20, 7, 7}, 20, 5, 1, 2, 1, 20));    // 5x5,
  check_not_finite(make({2, 9, 17, 28}, 9, 5, 1, 2, 1, 9));
  check_not_finite(make({2, 9, 10, 16}, 9, 7, 1, 3, 1, 9));     // turned,
  check_not_finite(make({2, 8, 40, 36}, 8, 3, 1, 1, 1, 8));     // rows in registers,
  check_not_finite(make({8, 48, 56, 56}, 48, 3, 1, 1, 1, 48));  // lines,
  check_not_finite(make({2, 6, 8, 72}, 6, 3, 1, 1, 1, 6));
  check_not_finite(make({2, 6, 30, 31}, 6, 3, 1, 1, 1, 6));  // blocks,
  check_not_finite(make({1, 4, 29, 32}, 4, 3, 2, 1, 1, 4));  // with strides and dilations
  check_not_finite(make({1, 4, 33, 50}, 4, 5, 1, 4, 2, 4));
  check_not_finite(make({2, 17, 9, 7}, 17, 3, 2, 1, 1, 17));  // channels in the lanes
  check_not_finite(make({1, 3, 32, 32}, 48, 8, 8));           // patches
  check_not_finite(make({2, 64, 16, 16}, 32, 1));             // a product
}

// Vectors that hold the end of a row and the beginning of the next.
void check_nan_at_the_end_of_a_row(int width) {
  const ConvConfig c = make({1, 1, 8, width}, 1, 3, 1, 1, 1, 1);
  std::vector<float> values(8 * width, 1.0f);
  values[3 * width + width - 1] = NAN;
  const HostTensor x = f32(x_shape(c), values), w = random_f32(w_shape(c), 3);
  for (DeviceClass d : device_classes()) {
    const auto y =
        run_plan(plan_conv2d(d, c, {}), {x, w}, TensorType{DType::kF32, y_shape(c)}).as<float>();
    for (int row = 0; row < 8; ++row) {
      for (int column = 0; column < width; ++column) {
        const bool expected = row >= 2 && row <= 4 && column >= width - 2;
        EXPECT_EQ(std::isnan(y[row * width + column]), expected) << row << "," << column;
      }
    }
  }
}

TEST(Conv, NanDoesNotReachTheNextRow) {
  for (int width : {24, 72}) check_nan_at_the_end_of_a_row(width);
}

TEST(Conv, NanReachesItsWindowsOnlyAndReluKeepsIt) {
  const ConvConfig c = make({1, 2, 5, 6}, 3, 3, 1, 1);
  std::vector<float> values(2 * 5 * 6, 1.0f);
  values[1 * 30 + 2 * 6 + 1] = NAN;  // channel 1, row 2, column 1
  const HostTensor x = f32(x_shape(c), values), w = random_f32(w_shape(c), 3);
  for (DeviceClass d : device_classes()) {
    ConvEpilogue e;
    e.has_relu = true;
    const auto y =
        run_plan(plan_conv2d(d, c, e), {x, w}, TensorType{DType::kF32, y_shape(c)}).as<float>();
    for (int o = 0; o < 3; ++o) {
      for (int row = 0; row < 5; ++row) {
        for (int column = 0; column < 6; ++column) {
          const bool expected = row >= 1 && row <= 3 && column <= 2;
          EXPECT_EQ(std::isnan(y[(o * 5 + row) * 6 + column]), expected) << row << "," << column;
        }
      }
    }
  }
}

}  // namespace
}  // namespace ballast::kernels::testing
