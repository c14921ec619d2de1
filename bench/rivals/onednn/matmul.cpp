#include "bench/rivals/onednn/onednn.h"

#include <stdexcept>

namespace ballast::bench::onednn {
namespace {

using dnnl::algorithm;

// Leading extents of a matrix product's first operand are rows, unless the second has them, too.
struct Product {
  Dims a, b, c;
  Dims a_strides, b_strides;
};

void swap_last(Dims& values) { std::swap(values[values.size() - 1], values[values.size() - 2]); }

Product product_of(const Case& c) {
  Product p;
  p.a = c.inputs[0].shape;
  p.b = c.inputs[1].shape;
  if (p.b.size() == 2 && p.a.size() > 2) {
    const auto k = p.a.back();
    p.a = {c.inputs[0].elements() / k, k};
  }
  p.a_strides = dense_strides(p.a);
  p.b_strides = dense_strides(p.b);
  if (int_of(c, "transpose_a")) swap_last(p.a), swap_last(p.a_strides);
  if (int_of(c, "transpose_b")) swap_last(p.b), swap_last(p.b_strides);
  p.c = p.a;
  p.c.back() = p.b.back();
  return p;
}

void append_activation(dnnl::post_ops& post_ops, const std::string& name) {
  static const std::map<std::string, algorithm> known = {
      {"relu", algorithm::eltwise_relu},
      {"gelu", algorithm::eltwise_gelu_erf},
      {"gelu_tanh", algorithm::eltwise_gelu_tanh},
      {"tanh", algorithm::eltwise_tanh},
      {"sigmoid", algorithm::eltwise_logistic}};
  if (name == "silu") {
    post_ops.append_eltwise(algorithm::eltwise_swish, 1.0f, 0.0f);
  } else if (name != "none" && name != "relu_grad") {
    post_ops.append_eltwise(known.at(name), 0.0f, 0.0f);
  }
}

std::vector<Variant> matmul(const Case& c) {
  const Product p = product_of(c);
  const std::string activation = string_of(c, "activation", "none");
  const Desc a = strided(p.a, p.a_strides), b = strided(p.b, p.b_strides), dst = plain(p.c);
  dnnl::post_ops post_ops;
  append_activation(post_ops, activation);
  std::unordered_map<int, Memory> arguments = {{DNNL_ARG_SRC, input(c, 0, a)},
                                               {DNNL_ARG_WEIGHTS, input(c, 1, b)},
                                               {DNNL_ARG_DST, empty(dst)}};
  const Memory result = arguments[DNNL_ARG_DST];
  size_t next = 2;
  Desc bias;
  if (int_of(c, "has_bias")) {
    Dims row(p.c.size(), 1);
    row.back() = p.c.back();
    bias = plain(row);
    arguments[DNNL_ARG_BIAS] = input(c, next++, bias);
  }
  if (int_of(c, "has_residual")) {
    const int at = post_ops.len();
    post_ops.append_binary(algorithm::binary_add, dst);
    arguments[DNNL_ARG_ATTR_MULTIPLE_POST_OP(at) | DNNL_ARG_SRC_1] = input(c, next++, dst);
  }
  const auto attr = attributes(post_ops);
  const auto desc = bias ? dnnl::matmul::primitive_desc(engine(), a, b, bias, dst, attr)
                         : dnnl::matmul::primitive_desc(engine(), a, b, dst, attr);
  std::vector<Action> actions = {action<dnnl::matmul>(desc, arguments)};
  if (activation == "relu_grad") {
    // No post-op masks with another tensor: the gradient's primitive works in place behind it.
    const algorithm relu = algorithm::eltwise_relu_use_dst_for_bwd;
    const dnnl::eltwise_forward::primitive_desc hint(engine(), dnnl::prop_kind::forward_training,
                                                     relu, dst, dst, 0.0f, 0.0f);
    const dnnl::eltwise_backward::primitive_desc mask(engine(), relu, dst, dst, dst, 0.0f, 0.0f,
                                                      hint, attributes());
    actions.push_back(action<dnnl::eltwise_backward>(mask, {{DNNL_ARG_DIFF_DST, result},
                                                            {DNNL_ARG_DIFF_SRC, result},
                                                            {DNNL_ARG_DST, input(c, next, dst)}}));
  }
  return {variant("", actions, {result})};
}

}  // namespace

void add_matmul(Makers& makers) { makers["matmul"] = matmul; }

}  // namespace ballast::bench::onednn
