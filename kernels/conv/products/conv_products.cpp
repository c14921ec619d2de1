#include "kernels/conv/products/conv_products.h"

#include "kernels/kernels.h"
#include "kernels/plan/halide_runtime.h"
#include "kernels/plan/plan_builder.h"
#include "kernels/recipe/lanes.h"
#include "kernels/shape/region.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace ballast::kernels {
namespace {

int64_t pixels(const ConvConfig& c) { return c.height * c.width; }

// How much of the lanes of whole vectors so many elements fill.
double filled(int64_t elements) {
  return double(elements) / double(ceil_div(elements, kLanes) * kLanes);
}

// Towards the weights: where one sample's pixels are few steps.
bool are_steps_side_by_side(DeviceClass device_class, const ConvConfig& c) {
  constexpr int64_t kFewPixels = 64;
  return pixels(c) <= kFewPixels && is_side_by_side(device_class, c);
}

// A copy of x or y in which the pixels of all samples lie side by side, channels whole cache lines
// apart: so vectors of it do not lie across two.
int64_t side_pitch(const ConvConfig& c) { return ceil_div(c.batch * pixels(c), kLanes) * kLanes; }
int64_t side_floats(const ConvConfig& c, int64_t channels) { return channels * side_pitch(c); }

// Copies x or y there, and back.
Plan copy(const ConvConfig& c, int64_t channels, bool is_back) {
  const int64_t p = pixels(c);
  const View apart{0, 0, {p, channels * p, 1}}, side{0, 0, {side_pitch(c), p, 1}};
  View from = is_back ? side : apart, to = is_back ? apart : side;
  to.slot = 1;
  Recorder recorder;
  record_copy(recorder, DeviceClass::kCpu, sizeof(float), {channels, c.batch, p}, from, to);
  return recorder.finish();
}

// One sample whose plane has the pixels of all.
ConvConfig as_one_sample(const ConvConfig& c) {
  ConvConfig one = c;
  one.batch = 1, one.height = c.batch, one.width = pixels(c);
  return one;
}

// Of so many `operands`, the first, of `in` channels, and the last, of `out`, are copied for the
// product of as_one_sample.
Plan with_copies(const ConvConfig& c, uint32_t operands, int64_t in, int64_t out,
                 const Plan& product) {
  PlanBuilder builder(operands);
  const uint32_t last = operands - 1;
  std::vector<uint32_t> slots(operands);
  std::iota(slots.begin(), slots.end(), 0);
  slots[0] = builder.add_floats(side_floats(c, in));
  slots[last] = builder.add_floats(side_floats(c, out));
  builder.append(copy(c, in, false), {0, slots[0]});
  builder.append(product, slots);
  builder.append(copy(c, out, true), {slots[last], last});
  return builder.finish();
}

// The product for y transposed: pixels are the rows, so that a bias or scale, one per channel, lies
// along the columns. Channels are `pitch` apart.
MatmulConfig product_with_bias(const ConvConfig& c, const ConvEpilogue& e, int64_t pitch) {
  const int64_t in = c.in_channels / c.groups, out = c.out_channels / c.groups;
  MatmulConfig product{pixels(c), out, in};
  product.a_strides = product.c_strides = MatmulStrides{1, pitch};
  product.b_strides = MatmulStrides{1, in};
  product.batch = {{c.batch, c.in_channels * pitch, 0, c.out_channels * pitch},
                   {c.groups, in * pitch, out * in, out * pitch}};
  product.has_bias = true;
  product.has_scale = e.has_scale;  // its shift is the bias
  product.activation = e.has_relu ? "relu" : "none";
  product.has_residual = e.has_residual;
  return product;
}

// y[n, g] = w[g] x[n, g], where channels are `pitch` apart.
Plan product(DeviceClass device_class, const ConvConfig& c, const ConvEpilogue& e, int64_t pitch) {
  if (e.has_bias || e.has_scale) return plan_matmul(device_class, product_with_bias(c, e, pitch));
  const int64_t in = c.in_channels / c.groups, out = c.out_channels / c.groups;
  MatmulConfig product{out, pixels(c), in};
  product.activation = e.has_relu ? "relu" : "none";
  product.has_residual = e.has_residual;
  product.b_strides = product.c_strides = MatmulStrides{pitch, 1};
  product.batch = {{c.batch, 0, c.in_channels * pitch, c.out_channels * pitch},
                   {c.groups, out * in, in * pitch, out * pitch}};
  const uint32_t out_slot = e.has_residual ? 3 : 2;
  PlanBuilder builder(out_slot + 1);
  std::vector<uint32_t> slots = {1, 0, 2};
  if (e.has_residual) slots.push_back(out_slot);
  builder.append(plan_matmul(device_class, product), slots);
  return builder.finish();
}

bool copies_side_by_side(DeviceClass device_class, const ConvConfig& c, const ConvEpilogue& e) {
  return !e.has_residual && is_side_by_side(device_class, c);
}

// That with a bias of plan_conv2d_product.
MatmulConfig product_of_plan(DeviceClass device_class, const ConvConfig& c, const ConvEpilogue& e) {
  return copies_side_by_side(device_class, c, e)
             ? product_with_bias(as_one_sample(c), e, side_pitch(c))
             : product_with_bias(c, e, pixels(c));
}

// dx[n, g] = w[g]^T dy[n, g]
Plan input_grad_product(DeviceClass device_class, const ConvConfig& c, int64_t pitch) {
  const int64_t in = c.in_channels / c.groups, out = c.out_channels / c.groups;
  MatmulConfig product;
  product.m = in;
  product.n = pixels(c);
  product.k = out;
  product.transpose_a = true;
  product.b_strides = product.c_strides = MatmulStrides{pitch, 1};
  product.batch = {{c.batch, 0, c.out_channels * pitch, c.in_channels * pitch},
                   {c.groups, out * in, out * pitch, in * pitch}};
  PlanBuilder builder(3);
  builder.append(plan_matmul(device_class, product), {1, 0, 2});
  return builder.finish();
}

// dw[g] = sum over n of dy[n, g] x[n, g]^T: the products of all samples, then their sum.
Plan weight_grad_product(DeviceClass device_class, const ConvConfig& c, int64_t pitch) {
  const int64_t in = c.in_channels / c.groups, out = c.out_channels / c.groups;
  const int64_t weights = c.out_channels * in;
  MatmulConfig product;
  product.m = out;
  product.n = in;
  product.k = pixels(c);
  product.a_strides = MatmulStrides{pitch, 1};
  product.b_strides = MatmulStrides{1, pitch};
  product.batch = {{c.batch, c.out_channels * pitch, c.in_channels * pitch, weights},
                   {c.groups, out * pitch, in * pitch, out * in}};
  if (c.batch == 1) return plan_matmul(device_class, product);
  PlanBuilder builder(3);
  const TensorType partial{DType::kF32, {c.batch, weights}};
  const uint32_t products = builder.add_region(partial.bytes());
  builder.append(plan_matmul(device_class, product), {0, 1, products});
  builder.append(plan_reduce(device_class, "sum", partial, {0}, {DType::kF32, {weights}}),
                 {products, 2});
  return builder.finish();
}

}  // namespace

bool reads_pixels_in_order(const ConvConfig& c) {
  return c.kernel_h == 1 && c.kernel_w == 1 && c.stride_h == 1 && c.stride_w == 1 && c.top == 0 &&
         c.bottom == 0 && c.left == 0 && c.right == 0;
}

bool is_product(DeviceClass device_class, const ConvConfig& c, const ConvEpilogue& e) {
  if (!reads_pixels_in_order(c)) return false;
  // A product's bias does not change from group to group, and it adds a residual after its
  // activation.
  const bool has_bias = e.has_bias || e.has_scale;
  if ((c.groups > 1 && has_bias) || (e.has_residual && e.has_relu)) return false;
  if (!e.has_scale) return true;
  return !e.has_bias && takes_scale(device_class, product_of_plan(device_class, c, e));
}

// 2048 to 512 channels of 8x7x7 on a Zen 3 8.2 to 6.5 ms.
bool is_side_by_side(DeviceClass device_class, const ConvConfig& c) {
  constexpr int64_t kLeastChannels = 32;  // else copying is too much of the time
  return device_class == DeviceClass::kCpu && c.batch > 1 &&
         std::min(c.in_channels, c.out_channels) >= kLeastChannels * c.groups &&
         filled(pixels(c)) < 0.875 * filled(c.batch * pixels(c));
}

Plan plan_conv2d_product(DeviceClass device_class, const ConvConfig& c, const ConvEpilogue& e) {
  if (!copies_side_by_side(device_class, c, e)) return product(device_class, c, e, pixels(c));
  const uint32_t operands = 3 + (e.has_bias ? 1 : 0) + (e.has_scale ? 2 : 0);
  return with_copies(c, operands, c.in_channels, c.out_channels,
                     product(device_class, as_one_sample(c), e, side_pitch(c)));
}

Plan plan_conv2d_input_grad_product(DeviceClass device_class, const ConvConfig& c) {
  if (!is_side_by_side(device_class, c)) return input_grad_product(device_class, c, pixels(c));
  return with_copies(c, 3, c.out_channels, c.in_channels,
                     input_grad_product(device_class, as_one_sample(c), side_pitch(c)));
}

// One product of the pixels of all samples where those of one are few steps.
Plan plan_conv2d_weight_grad_product(DeviceClass device_class, const ConvConfig& c) {
  if (!are_steps_side_by_side(device_class, c)) {
    return weight_grad_product(device_class, c, pixels(c));
  }
  PlanBuilder builder(3);
  const uint32_t dy = builder.add_floats(side_floats(c, c.out_channels)),
                 x = builder.add_floats(side_floats(c, c.in_channels));
  builder.append(copy(c, c.out_channels, false), {0, dy});
  builder.append(copy(c, c.in_channels, false), {1, x});
  builder.append(weight_grad_product(device_class, as_one_sample(c), side_pitch(c)), {dy, x, 2});
  return builder.finish();
}

}  // namespace ballast::kernels
