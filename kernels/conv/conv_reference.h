// What tests of convolutions share: the products that a convolution adds up, and bounds.
#pragma once

#include "kernels/conv/conv_arguments.h"
#include "kernels/test_support.h"

#include <limits>
#include <string>
#include <vector>

namespace ballast::kernels::testing {

// Calls f(offset in x, offset in w, offset in y) for every product of the convolution that does not
// fall on padding.
template <class F>
void for_each_product(const ConvConfig& c, const F& f) {
  const int64_t group_in = c.in_channels / c.groups, group_out = c.out_channels / c.groups;
  for (int64_t n = 0; n < c.batch; ++n) {
    for (int64_t o = 0; o < c.out_channels; ++o) {
      for (int64_t y = 0; y < c.out_h(); ++y) {
        for (int64_t x = 0; x < c.out_w(); ++x) {
          const int64_t at_y = ((n * c.out_channels + o) * c.out_h() + y) * c.out_w() + x;
          const int64_t left = x * c.stride_w - c.left;
          for (int64_t ci = 0; ci < group_in; ++ci) {
            const int64_t plane = n * c.in_channels + o / group_out * group_in + ci;
            for (int64_t ky = 0; ky < c.kernel_h; ++ky) {
              const int64_t iy = y * c.stride_h + ky * c.dilation_h - c.top;
              if (iy < 0 || iy >= c.height) continue;
              const int64_t row_of_x = (plane * c.height + iy) * c.width,
                            row_of_w = ((o * group_in + ci) * c.kernel_h + ky) * c.kernel_w;
              for (int64_t kx = 0; kx < c.kernel_w; ++kx) {
                const int64_t ix = left + kx * c.dilation_w;
                if (ix >= 0 && ix < c.width) f(row_of_x + ix, row_of_w + kx, at_y);
              }
            }
          }
        }
      }
    }
  }
}

inline std::string name_of(const ConvConfig& c) {
  return fmt::format("x {} w {} y {} stride {},{} pad {},{},{},{} dilation {},{} groups {}",
                     to_string(x_shape(c)), to_string(w_shape(c)), to_string(y_shape(c)),
                     c.stride_h, c.stride_w, c.top, c.bottom, c.left, c.right, c.dilation_h,
                     c.dilation_w, c.groups);
}

// |got - want| <= rounding of `terms` products whose absolute values sum to `magnitude`.
inline void expect_near(const std::vector<float>& got, const std::vector<double>& want,
                        const std::vector<double>& magnitude, int64_t terms,
                        const std::string& what) {
  ASSERT_EQ(got.size(), want.size());
  const double rounding = (terms + 4) * std::numeric_limits<float>::epsilon() / 2;
  size_t wrong = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    wrong += !(std::fabs(got[i] - want[i]) <= rounding * magnitude[i] + 1e-30);
  }
  EXPECT_EQ(wrong, 0u) << what;
}

inline int64_t products_of(const ConvConfig& c) {
  return elements(y_shape(c)) * (c.in_channels / c.groups) * c.kernel_h * c.kernel_w;
}

struct Totals {
  std::vector<double> value, magnitude;
  explicit Totals(int64_t n) : value(n), magnitude(n) {}
  void add(int64_t at, double product) {
    value[at] += product;
    magnitude[at] += std::fabs(product);
  }
};

inline ConvConfig make(Shape x, int64_t out_channels, int64_t kernel, int64_t stride = 1,
                       int64_t pad = 0, int64_t dilation = 1, int64_t groups = 1) {
  ConvConfig c;
  c.batch = x[0], c.in_channels = x[1], c.height = x[2], c.width = x[3];
  c.out_channels = out_channels;
  c.kernel_h = c.kernel_w = kernel;
  c.stride_h = c.stride_w = stride;
  c.top = c.bottom = c.left = c.right = pad;
  c.dilation_h = c.dilation_w = dilation;
  c.groups = groups;
  return c;
}

// y, dx and dw of these operands by loops in double precision.
struct AllTotals {
  Totals y, dx, dw;
  AllTotals(const ConvConfig& c, const std::vector<float>& x, const std::vector<float>& w,
            const std::vector<float>& dy)
      : y(dy.size()), dx(x.size()), dw(w.size()) {
    for_each_product(c, [&](int64_t at_x, int64_t at_w, int64_t at_y) {
      y.add(at_y, double{x[at_x]} * w[at_w]);
      dx.add(at_x, double{dy[at_y]} * w[at_w]);
      dw.add(at_w, double{dy[at_y]} * x[at_x]);
    });
  }
};

// y, dx and dw of one convolution against loops in double precision.
inline void check(const ConvConfig& c) {
  const HostTensor x = random_f32(x_shape(c), 1), w = random_f32(w_shape(c), 2),
                   dy = random_f32(y_shape(c), 3);
  const auto [y, dx, dw] = AllTotals(c, x.as<float>(), w.as<float>(), dy.as<float>());
  const int64_t taps = c.kernel_h * c.kernel_w;
  for (DeviceClass d : device_classes()) {
    if (is_too_slow(d, products_of(c))) continue;
    const std::string what = class_name(d) + " " + name_of(c);
    expect_near(run_plan(plan_conv2d(d, c, {}), {x, w}, dy.type).as<float>(), y.value, y.magnitude,
                taps * c.in_channels / c.groups, "y of " + what);
    expect_near(run_plan(plan_conv2d_input_grad(d, c), {dy, w}, x.type).as<float>(), dx.value,
                dx.magnitude, taps * c.out_channels / c.groups, "dx of " + what);
    expect_near(run_plan(plan_conv2d_weight_grad(d, c), {dy, x}, w.type).as<float>(), dw.value,
                dw.magnitude, c.batch * c.out_h() * c.out_w(), "dw of " + what);
  }
}

// Results of operands that are not finite everywhere. A kernel may multiply the zeros it adds:
// around x and dy, between the elements of dy where there are strides, and in windows of whole
// phases. So NaN is a result as well where such a zero may meet what is not finite.
struct Marked {
  std::vector<double> value;
  std::vector<bool> may_be_nan;
  explicit Marked(size_t n) : value(n), may_be_nan(n) {}
};

// Sums of up to 30000 products below 1.
inline void expect_marks(const std::vector<float>& got, const Marked& want,
                         const std::string& what) {
  ASSERT_EQ(got.size(), want.value.size());
  size_t wrong = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    const double wanted = want.value[i];
    const bool is_same = std::isfinite(wanted) ? std::fabs(got[i] - wanted) <= 1e-2
                         : std::isnan(wanted)  ? std::isnan(got[i])
                                               : got[i] == wanted;
    wrong += !is_same && !(want.may_be_nan[i] && std::isnan(got[i]));
  }
  EXPECT_EQ(wrong, 0u) << what;
}

}  // namespace ballast::kernels::testing
