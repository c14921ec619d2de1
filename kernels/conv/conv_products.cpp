#include "kernels/conv/conv_products.h"

#include "kernels/kernels.h"
#include "kernels/lanes.h"
#include "kernels/plan_builder.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace ballast::kernels {
namespace {

int64_t pixels(const ConvConfig& c) { return c.height * c.width; }

// Pixels are the rows of a sample's matrix: so the bias, one per channel, lies along the columns.
MatmulStrides sample(const ConvConfig& c) { return {1, pixels(c)}; }

// How much of the lanes of whole vectors so many elements fill.
double filled(int64_t elements) {
  return double(elements) / double(ceil_div(elements, kLanes) * kLanes);
}

// Whether a CPU does better with the pixels of all samples side by side, for which x and y are
// copied: those of one leave many lanes empty. 2048 to 512 channels of 8x7x7 on a Zen 3 8.2 to
// 6.5 ms.
bool are_side_by_side(DeviceClass device_class, const ConvConfig& c) {
  constexpr int64_t kLeastChannels = 32;  // else copying is too much of the time
  return device_class == DeviceClass::kCpu && c.batch > 1 &&
         std::min(c.in_channels, c.out_channels) >= kLeastChannels * c.groups &&
         filled(pixels(c)) < 0.875 * filled(c.batch * pixels(c));
}
// The same towards the weights, where one sample's pixels are few steps.
bool are_steps_side_by_side(DeviceClass device_class, const ConvConfig& c) {
  constexpr int64_t kFewPixels = 64;
  return pixels(c) <= kFewPixels && are_side_by_side(device_class, c);
}

// x or y, from samples one after the other to pixels side by side, and back.
Plan copy_side_by_side(const ConvConfig& c, int64_t channels) {
  const int64_t p = pixels(c);
  return plan_copy(DeviceClass::kCpu, DType::kF32, {channels, c.batch, p}, {p, channels * p, 1});
}
Plan copy_apart(const ConvConfig& c, int64_t channels) {
  const int64_t p = pixels(c);
  return plan_copy(DeviceClass::kCpu, DType::kF32, {c.batch, channels, p}, {p, c.batch * p, 1});
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
  slots[0] = builder.add_floats(in * c.batch * pixels(c));
  slots[last] = builder.add_floats(out * c.batch * pixels(c));
  builder.append(copy_side_by_side(c, in), {0, slots[0]});
  builder.append(product, slots);
  builder.append(copy_apart(c, out), {slots[last], last});
  return builder.finish();
}

}  // namespace

bool reads_pixels_in_order(const ConvConfig& c) {
  return c.kernel_h == 1 && c.kernel_w == 1 && c.stride_h == 1 && c.stride_w == 1 && c.top == 0 &&
         c.bottom == 0 && c.left == 0 && c.right == 0;
}

bool is_product(const ConvConfig& c, const ConvEpilogue& e) {
  // A product's bias does not change from group to group; it knows no scale, and adds a residual
  // after its activation.
  return reads_pixels_in_order(c) && !e.has_scale && (c.groups == 1 || !e.has_bias) &&
         !(e.has_residual && e.has_relu);
}

// y[n, g] = w[g] x[n, g]; with a bias transposed, so that it lies along the columns.
Plan plan_conv2d_product(DeviceClass device_class, const ConvConfig& c, const ConvEpilogue& e) {
  if (!e.has_residual && are_side_by_side(device_class, c)) {
    const Plan product = plan_conv2d_product(device_class, as_one_sample(c), e);
    return with_copies(c, e.has_bias ? 4 : 3, c.in_channels, c.out_channels, product);
  }
  const int64_t in = c.in_channels / c.groups, out = c.out_channels / c.groups, p = pixels(c);
  MatmulConfig product;
  product.k = in;
  product.activation = e.has_relu ? "relu" : "none";
  product.has_residual = e.has_residual;
  if (!e.has_bias) {
    product.m = out;
    product.n = p;
    product.batch = {{c.batch, 0, c.in_channels * p, c.out_channels * p},
                     {c.groups, out * in, in * p, out * p}};
    const uint32_t out_slot = e.has_residual ? 3 : 2;
    PlanBuilder builder(out_slot + 1);
    std::vector<uint32_t> slots = {1, 0, 2};
    if (e.has_residual) slots.push_back(out_slot);
    builder.append(plan_matmul(device_class, product), slots);
    return builder.finish();
  }
  product.m = p;
  product.n = out;
  product.a_strides = product.c_strides = sample(c);
  product.b_strides = MatmulStrides{1, in};
  product.batch = {{c.batch, c.in_channels * p, 0, c.out_channels * p},
                   {c.groups, in * p, out * in, out * p}};
  product.has_bias = true;
  return plan_matmul(device_class, product);
}

// dx[n, g] = w[g]^T dy[n, g]
Plan plan_conv2d_input_grad_product(DeviceClass device_class, const ConvConfig& c) {
  if (are_side_by_side(device_class, c)) {
    const Plan product = plan_conv2d_input_grad_product(device_class, as_one_sample(c));
    return with_copies(c, 3, c.out_channels, c.in_channels, product);
  }
  const int64_t in = c.in_channels / c.groups, out = c.out_channels / c.groups, p = pixels(c);
  MatmulConfig product;
  product.m = in;
  product.n = p;
  product.k = out;
  product.transpose_a = true;
  product.batch = {{c.batch, 0, c.out_channels * p, c.in_channels * p},
                   {c.groups, out * in, out * p, in * p}};
  PlanBuilder builder(3);
  builder.append(plan_matmul(device_class, product), {1, 0, 2});
  return builder.finish();
}

// dw[g] = sum over n of dy[n, g] x[n, g]^T: the products of all samples, then their sum, or one of
// the pixels of all.
Plan plan_conv2d_weight_grad_product(DeviceClass device_class, const ConvConfig& c) {
  if (are_steps_side_by_side(device_class, c)) {
    PlanBuilder builder(3);
    const uint32_t dy = builder.add_floats(c.out_channels * c.batch * pixels(c)),
                   x = builder.add_floats(c.in_channels * c.batch * pixels(c));
    builder.append(copy_side_by_side(c, c.out_channels), {0, dy});
    builder.append(copy_side_by_side(c, c.in_channels), {1, x});
    builder.append(plan_conv2d_weight_grad_product(device_class, as_one_sample(c)), {dy, x, 2});
    return builder.finish();
  }
  const int64_t in = c.in_channels / c.groups, out = c.out_channels / c.groups, p = pixels(c);
  const int64_t weights = c.out_channels * in;
  MatmulConfig product;
  product.m = out;
  product.n = in;
  product.k = p;
  product.transpose_b = true;
  product.batch = {{c.batch, c.out_channels * p, c.in_channels * p, weights},
                   {c.groups, out * p, in * p, out * in}};
  if (c.batch == 1) return plan_matmul(device_class, product);
  PlanBuilder builder(3);
  const TensorType partial{DType::kF32, {c.batch, weights}};
  const uint32_t products = builder.add_region(partial.bytes());
  builder.append(plan_matmul(device_class, product), {0, 1, products});
  builder.append(plan_reduce(device_class, "sum", partial, {0}, {DType::kF32, {weights}}),
                 {products, 2});
  return builder.finish();
}

}  // namespace ballast::kernels
