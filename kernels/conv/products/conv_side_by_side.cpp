#include "kernels/conv/products/conv_side_by_side.h"

#include "kernels/conv/conv_arguments.h"
#include "kernels/conv/products/conv_moved.h"
#include "kernels/conv/products/conv_patches.h"
#include "kernels/plan/registers.h"
#include "kernels/shape/shape.h"

namespace ballast::kernels {
namespace {

constexpr DeviceClass kCpu = DeviceClass::kCpu;

// The convolution of 1x1 over planes of as many pixels as there are windows.
ConvConfig of_points(const ConvConfig& c) {
  ConvConfig points = c;
  points.in_channels = c.in_channels * c.kernel_h * c.kernel_w;
  points.height = c.out_h(), points.width = c.out_w();
  points.kernel_h = points.kernel_w = points.stride_h = points.stride_w = 1;
  return points;
}

// Its channels, each a pixel of all windows, from an image.
Plan plan_depth_of_space(const ConvConfig& c) {
  const int64_t plane = c.height * c.width;
  return plan_copy(kCpu, DType::kF32,
                   {c.batch * c.in_channels, c.kernel_h, c.kernel_w, c.out_h(), c.out_w()},
                   {plane, c.width, 1, c.kernel_h * c.width, c.kernel_w});
}

// And back.
Plan plan_space_of_depth(const ConvConfig& c) {
  const int64_t windows = c.out_h() * c.out_w(), of_row = c.kernel_w * windows;
  return plan_copy(kCpu, DType::kF32,
                   {c.batch * c.in_channels, c.out_h(), c.kernel_h, c.out_w(), c.kernel_w},
                   {c.kernel_h * of_row, c.out_w(), of_row, 1, windows});
}

}  // namespace

bool is_side_by_side_input_grad(const ConvConfig& c) {
  constexpr int64_t kMostColumns = 7;
  return has_windows_side_by_side(c) && c.kernel_w > 1 && c.kernel_w <= kMostColumns &&
         c.groups == 1 && elements_of(y_shape(c)) > 0 && elements_of(x_shape(c)) > 0;
}

bool is_side_by_side(const ConvConfig& c) {
  constexpr int64_t kLeastTaps = 32;
  return !has_wide_registers() && is_side_by_side_input_grad(c) &&
         (c.kernel_w == 2 || c.kernel_w == 4) &&
         c.in_channels * c.kernel_h * c.kernel_w >= kLeastTaps;
}

Plan plan_conv2d_side_by_side(const ConvConfig& c, const ConvEpilogue& e) {
  return plan_conv2d_moved(plan_depth_of_space(c), of_points(c), e);
}

Plan plan_conv2d_input_grad_side_by_side(const ConvConfig& c) {
  return plan_conv2d_input_grad_moved(of_points(c), plan_space_of_depth(c));
}

}  // namespace ballast::kernels
