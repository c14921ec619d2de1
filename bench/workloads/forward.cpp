#include "bench/workloads/forward.h"

#include "frontend/ballast_frontend.h"

namespace workloads {
namespace {

using namespace ballast;

Tensors add_mul(const Tensors& a) { return {(a[0] + a[1]) * a[0]}; }

Tensors fused_chain(const Tensors& a) { return {ops::gelu(a[0] * a[1] + a[2]) + a[3]}; }

Tensors gemm(const Tensors& a) { return {ops::matmul(a[0], a[1])}; }

Tensors gemm_bias_relu(const Tensors& a) { return {ops::relu(ops::matmul(a[0], a[1]) + a[2])}; }

Tensors softmax(const Tensors& a) { return {ops::softmax(a[0])}; }

Tensors layer_norm(const Tensors& a) { return {ops::layer_norm(a[0], a[1], a[2]).y}; }

Tensors conv_bn_relu(const Tensors& a) {
  ops::Window2d window;
  window.pad_mode = "same";
  const Tensor planes = ops::conv2d(a[0], a[1], window);
  return {ops::relu(ops::batch_norm_inference(planes, a[2], a[3], a[4], a[5]))};
}

// Of a model: x, then its parameters.
template <Tensor (*kModel)(const Tensors&, const Tensor&)>
Tensors model(const Tensors& a) {
  return {kModel({a.begin() + 1, a.end()}, a[0])};
}

// Of the sum of what attention gives, with respect to x and all parameters.
Tensors attention_grad(const Tensors& a) {
  const auto total = [](const Tensor& x, const Tensor& qkv_w, const Tensor& qkv_b,
                        const Tensor& proj_w, const Tensor& proj_b) {
    return ops::sum(attention({qkv_w, qkv_b, proj_w, proj_b}, x));
  };
  return grad(total, std::vector<int>{0, 1, 2, 3, 4})(a[0], a[1], a[2], a[3], a[4]);
}

Names with_x(Names parameters) {
  parameters.insert(parameters.begin(), "x");
  return parameters;
}

}  // namespace

const std::map<std::string, Forward>& forwards() {
  static const std::map<std::string, Forward> kAll = {
      {"eager_add_mul_1024", {{"x", "y"}, add_mul}},
      {"fused_add_mul_1024", {{"x", "y"}, add_mul}},
      {"fused_chain_4m", {{"x", "a", "b", "r"}, fused_chain}},
      {"gemm_1024", {{"x", "w"}, gemm}},
      {"gemm_bias_relu_1024", {{"x", "w", "b"}, gemm_bias_relu}},
      {"softmax_4096x1024", {{"x"}, softmax}},
      {"layernorm_4096x1024", {{"x", "g", "b"}, layer_norm}},
      {"conv_bn_relu", {{"x", "w", "g", "b", "m", "v"}, conv_bn_relu}},
      {"attention_fwd", {with_x(attention_parameters()), model<attention>}},
      {"attention_grad", {with_x(attention_parameters()), attention_grad}},
      {"mlp_infer", {with_x(mlp_parameters()), model<mlp>, /*can_sink=*/true}},
      {"vit_infer", {with_x(vit_parameters()), model<vit>, /*can_sink=*/true}},
  };
  return kAll;
}

}  // namespace workloads
