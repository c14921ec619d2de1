#include "kernels/conv/conv_products.h"

#include "kernels/kernels.h"
#include "kernels/plan_builder.h"

namespace ballast::kernels {
namespace {

int64_t pixels(const ConvConfig& c) { return c.height * c.width; }

// Pixels are the rows of a sample's matrix: so the bias, one per channel, lies along the columns.
MatmulStrides sample(const ConvConfig& c) { return {1, pixels(c)}; }

}  // namespace

bool is_product(const ConvConfig& c, const ConvEpilogue& e) {
  const bool is_single_tap = c.kernel_h == 1 && c.kernel_w == 1 && c.stride_h == 1 &&
                             c.stride_w == 1 && c.top == 0 && c.bottom == 0 && c.left == 0 &&
                             c.right == 0;
  // A product's bias does not change from group to group; it knows no scale, and adds a residual
  // after its activation.
  return is_single_tap && !e.has_scale && (c.groups == 1 || !e.has_bias) &&
         !(e.has_residual && e.has_relu);
}

// y[n, g] = w[g] x[n, g]; with a bias transposed, so that it lies along the columns.
Plan plan_conv2d_product(DeviceClass device_class, const ConvConfig& c, const ConvEpilogue& e) {
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

// dw[g] = sum over n of dy[n, g] x[n, g]^T: the products of all samples, then their sum.
Plan plan_conv2d_weight_grad_product(DeviceClass device_class, const ConvConfig& c) {
  const int64_t in = c.in_channels / c.groups, out = c.out_channels / c.groups, p = pixels(c);
  const int64_t weights = c.out_channels * in;
  MatmulConfig product;
  product.m = out;
  product.n = in;
  product.k = p;
  product.transpose_b = true;
  product.batch = {{c.batch, c.out_channels * p, c.in_channels * p, weights},
                   {c.groups, out * p, in * p, out * in}};
  PlanBuilder builder(3);
  const TensorType partial{DType::kF32, {c.batch, weights}};
  const uint32_t products = builder.add_region(partial.bytes());
  builder.append(plan_matmul(device_class, product), {0, 1, products});
  builder.append(plan_reduce(device_class, "sum", partial, {0}, {DType::kF32, {weights}}),
                 {products, 2});
  return builder.finish();
}

}  // namespace ballast::kernels
