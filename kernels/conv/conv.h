// 2-D convolutions over [N, C, H, W] and their gradients, with strides, padding, dilation and
// groups. f32; the order of accumulation depends on shapes and on the CPU's registers
// (registers.h). Stateless; any thread may call.
#pragma once

#include "kernels/plan/plan.h"

#include <string>
#include <vector>

namespace ballast::kernels {

// The convolution that all three plans refer to: x[batch, in_channels, height, width] with
// w[out_channels, in_channels / groups, kernel_h, kernel_w] to y[batch, out_channels, out_h,
// out_w]. Padding is zeros around x. Zeros that a kernel adds (padding, and between the strides of
// dy) may be multiplied or not, so where they meet inf or NaN the result may be NaN; so may those
// beside it where conv_winograd.h computes them, and a depthwise weight's infinite gradient where
// an infinity of x lies in what a row's last two vectors share, of which one multiplies it by zero.
struct ConvConfig {
  int64_t batch = 0, in_channels = 0, height = 0, width = 0;
  int64_t out_channels = 0, kernel_h = 1, kernel_w = 1;
  int64_t stride_h = 1, stride_w = 1;
  int64_t top = 0, bottom = 0, left = 0, right = 0;
  int64_t dilation_h = 1, dilation_w = 1;
  int64_t groups = 1;

  // Negative or zero where the kernel does not fit into the padded input.
  int64_t out_h() const;
  int64_t out_w() const;
};

// y = activation(scale * (conv(x, w) + bias) + shift + residual), each part where it is asked for.
struct ConvEpilogue {
  bool has_bias = false;      // bias[O]
  bool has_scale = false;     // scale[O], shift[O]: batch normalisation at inference
  bool has_residual = false;  // of y's shape
  bool has_relu = false;
};

// Inputs x, w, then bias, scale, shift, residual where the epilogue has them; output y.
Plan plan_conv2d(DeviceClass device_class, const ConvConfig& config, const ConvEpilogue& epilogue);
// Inputs dy, w; output dx.
Plan plan_conv2d_input_grad(DeviceClass device_class, const ConvConfig& config);
// Inputs dy, x; output dw.
Plan plan_conv2d_weight_grad(DeviceClass device_class, const ConvConfig& config);

}  // namespace ballast::kernels
