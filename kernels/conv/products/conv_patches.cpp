#include "kernels/conv/products/conv_patches.h"

#include "kernels/conv/conv_arguments.h"
#include "kernels/conv/conv_operands.h"
#include "kernels/kernels.h"
#include "kernels/plan/plan_builder.h"
#include "kernels/plan/registers.h"
#include "kernels/plan/workspace.h"
#include "kernels/shape/region.h"

#include <string>

namespace ballast::kernels {
namespace {

// Sizes of a group's product, y[windows, out] = rows[windows, taps] w[out, taps]^T, and what they
// are made of.
struct Sizes {
  int64_t across, down, plane;  // windows of an image
  int64_t windows, taps, out;
  int64_t row;  // taps of all groups, a row of `rows`

  explicit Sizes(const ConvConfig& c)
      : across(c.out_w()),
        down(c.out_h()),
        plane(across * down),
        windows(c.batch * plane),
        taps(c.in_channels / c.groups * c.kernel_h * c.kernel_w),
        out(c.out_channels / c.groups),
        row(taps * c.groups) {}
};

// rows[image, down, across, channel, kernel_h, kernel_w] of images.
Plan plan_rows_of_images(DeviceClass device_class, const ConvConfig& c, const Sizes& s) {
  Recorder recorder;
  Workspace scratch(2);
  const PaddedPlanes in = pad_input(recorder, scratch, 0, c);
  const Shape shape{c.batch, s.down, s.across, c.in_channels, c.kernel_h, c.kernel_w};
  const View windows{in.slot,
                     0,
                     {in.image, c.stride_h * in.pitch, c.stride_w, in.plane,
                      c.dilation_h * in.pitch, c.dilation_w}};
  record_copy(recorder, device_class, sizeof(float), shape, windows, dense_view(1, shape));
  return recorder.finish(scratch);
}

// And back.
Plan plan_images_of_rows(DeviceClass device_class, const ConvConfig& c, const Sizes& s) {
  const int64_t window = c.kernel_h * c.kernel_w;
  return plan_copy(device_class, DType::kF32,
                   {c.batch, c.in_channels, s.down, c.kernel_h, s.across, c.kernel_w},
                   {s.plane * s.row, window, s.across * s.row, c.kernel_w, s.row, 1});
}

}  // namespace

bool has_windows_side_by_side(const ConvConfig& c) {
  // Padding behind x may be negative, so that a sum says nothing.
  const bool is_padded = c.top != 0 || c.bottom != 0 || c.left != 0 || c.right != 0;
  return c.stride_h == c.kernel_h && c.stride_w == c.kernel_w && c.dilation_h == 1 &&
         c.dilation_w == 1 && !is_padded && c.height % c.kernel_h == 0 && c.width % c.kernel_w == 0;
}

// Rows of a window shorter than a vector of 8 cost more to move than the products save: of 4x4
// (3 to 96 channels) the forward pass and the weight gradient took 1.3 times as long as otherwise.
bool is_patches(const ConvConfig& c) {
  constexpr int64_t kLeastColumns = 8, kLeastTaps = 32, kLeastChannels = 16;
  if (!has_windows_side_by_side(c) || c.kernel_w < kLeastColumns) return false;
  const Sizes s(c);
  return s.taps >= kLeastTaps && s.out >= kLeastChannels;
}

bool has_few_windows(const ConvConfig& c) {
  constexpr int64_t kFewWindows = 64, kManyWeights = 1 << 19;
  const Sizes s(c);
  return has_wide_registers() && c.groups == 1 && s.windows > 0 && s.windows <= kFewWindows &&
         s.taps * s.out >= kManyWeights;
}

// What the product's epilogue cannot do follows it, step by step: a bias that differs between
// groups, a scale and a shift, a residual.
Plan plan_conv2d_patches(DeviceClass device_class, const ConvConfig& c, const ConvEpilogue& e) {
  const Sizes s(c);
  const bool adds_bias = e.has_bias && c.groups == 1;
  const bool ends_apart = adds_bias != e.has_bias || e.has_scale || e.has_residual;
  const EpilogueOperands terms(e, {c.out_channels});
  const uint32_t y = terms.out;
  PlanBuilder builder(y + 1);
  const uint32_t rows = builder.add_floats(s.windows * s.row);
  const uint32_t products = builder.add_floats(s.windows * c.out_channels);

  builder.append(plan_rows_of_images(device_class, c, s), {0, rows});
  MatmulConfig product;
  product.m = s.windows, product.n = s.out, product.k = s.taps;
  product.a_strides = MatmulStrides{s.row, 1};
  product.b_strides = MatmulStrides{1, s.taps};
  product.c_strides = MatmulStrides{c.out_channels, 1};
  product.batch = {{c.groups, s.taps, s.out * s.taps, s.out}};
  product.has_bias = adds_bias;
  product.activation = e.has_relu && !ends_apart ? "relu" : "none";
  std::vector<uint32_t> slots = {rows, 1};
  if (adds_bias) slots.push_back(terms.bias.slot);
  slots.push_back(products);
  builder.append(plan_matmul(device_class, product), slots);
  builder.append(plan_copy(device_class, DType::kF32, {c.batch, c.out_channels, s.plane},
                           {s.plane * c.out_channels, 1, c.out_channels}),
                 {products, y});

  const TensorType result{DType::kF32, {c.batch, c.out_channels, s.down, s.across}},
      per_channel{DType::kF32, {c.out_channels, 1, 1}};
  const auto follow = [&](const std::string& op, const TensorType& other, uint32_t operand) {
    builder.append(plan_pointwise(device_class, op, {result, other}, result), {y, operand, y});
  };
  if (e.has_bias && !adds_bias) follow("add", per_channel, terms.bias.slot);
  if (e.has_scale) {
    follow("mul", per_channel, terms.scale.slot);
    follow("add", per_channel, terms.shift.slot);
  }
  if (e.has_residual) follow("add", result, terms.residual_slot);
  if (e.has_relu && ends_apart) {
    builder.append(plan_pointwise(device_class, "relu", {result}, result), {y, y});
  }
  return builder.finish();
}

// rows[n] = dy[n]^T w, whose elements go back to where the image had them.
Plan plan_conv2d_input_grad_patches(DeviceClass device_class, const ConvConfig& c) {
  const Sizes s(c);
  PlanBuilder builder(3);
  const uint32_t rows = builder.add_floats(s.windows * s.row);
  MatmulConfig product;
  product.m = s.plane, product.n = s.taps, product.k = s.out;
  product.a_strides = MatmulStrides{1, s.plane};
  product.c_strides = MatmulStrides{s.row, 1};
  product.batch = {{c.batch, c.out_channels * s.plane, 0, s.plane * s.row},
                   {c.groups, s.out * s.plane, s.out * s.taps, s.taps}};
  builder.append(plan_matmul(device_class, product), {0, 1, rows});
  builder.append(plan_images_of_rows(device_class, c, s), {rows, 2});
  return builder.finish();
}

// dw = dy rows over the windows of all images, for which dy is written by channels first.
Plan plan_conv2d_weight_grad_patches(DeviceClass device_class, const ConvConfig& c) {
  const Sizes s(c);
  PlanBuilder builder(3);
  const uint32_t rows = builder.add_floats(s.windows * s.row);
  uint32_t dy = 0;
  if (c.batch > 1) {
    dy = builder.add_floats(s.windows * c.out_channels);
    builder.append(plan_copy(device_class, DType::kF32, {c.out_channels, c.batch, s.plane},
                             {s.plane, c.out_channels * s.plane, 1}),
                   {0, dy});
  }
  builder.append(plan_rows_of_images(device_class, c, s), {1, rows});
  MatmulConfig product;
  product.m = s.out, product.n = s.taps, product.k = s.windows;
  product.b_strides = MatmulStrides{s.row, 1};
  product.batch = {{c.groups, s.out * s.windows, s.taps, s.out * s.taps}};
  builder.append(plan_matmul(device_class, product), {dy, rows, 2});
  return builder.finish();
}

}  // namespace ballast::kernels
