#include "bench/rivals/onednn/onednn.h"

namespace ballast::bench::onednn {
namespace {

using dnnl::algorithm;

std::vector<Variant> eltwise(const Case& c, algorithm kind, float alpha) {
  const Desc desc = plain(c.inputs[0].shape);
  const dnnl::eltwise_forward::primitive_desc pd(engine(), dnnl::prop_kind::forward_inference, kind,
                                                 desc, desc, alpha, 0.0f, attributes());
  const Memory y = empty(desc);
  return {variant(
      "", {action<dnnl::eltwise_forward>(pd, {{DNNL_ARG_SRC, input(c, 0)}, {DNNL_ARG_DST, y}})},
      {y})};
}

// With as many extents as the other operand, missing ones 1.
Desc widened(const Dims& shape, size_t rank) {
  Dims dims(rank - shape.size(), 1);
  dims.insert(dims.end(), shape.begin(), shape.end());
  return plain(dims);
}

Dims broadcast(const Dims& a, const Dims& b) {
  Dims result(a.size());
  for (size_t i = 0; i < a.size(); ++i) result[i] = std::max(a[i], b[i]);
  return result;
}

std::vector<Variant> binary(const Case& c, algorithm kind) {
  const size_t rank =
      std::max<size_t>(1, std::max(c.inputs[0].shape.size(), c.inputs[1].shape.size()));
  const Desc a = widened(c.inputs[0].shape, rank), b = widened(c.inputs[1].shape, rank);
  const Desc dst = plain(broadcast(a.get_dims(), b.get_dims()));
  const dnnl::binary::primitive_desc pd(engine(), kind, a, b, dst, attributes());
  const Memory y = empty(dst);
  return {variant("",
                  {action<dnnl::binary>(pd, {{DNNL_ARG_SRC_0, input(c, 0, a)},
                                             {DNNL_ARG_SRC_1, input(c, 1, b)},
                                             {DNNL_ARG_DST, y}})},
                  {y})};
}

std::vector<Variant> relu_grad(const Case& c) {
  const Desc desc = plain(c.inputs[0].shape);
  const algorithm relu = algorithm::eltwise_relu_use_dst_for_bwd;
  const dnnl::eltwise_forward::primitive_desc hint(engine(), dnnl::prop_kind::forward_training,
                                                   relu, desc, desc, 0.0f, 0.0f);
  const dnnl::eltwise_backward::primitive_desc pd(engine(), relu, desc, desc, desc, 0.0f, 0.0f,
                                                  hint, attributes());
  const Memory dx = empty(desc);
  return {variant("",
                  {action<dnnl::eltwise_backward>(pd, {{DNNL_ARG_DIFF_DST, input(c, 0)},
                                                       {DNNL_ARG_DST, input(c, 1)},
                                                       {DNNL_ARG_DIFF_SRC, dx}})},
                  {dx})};
}

// (a + b) * c: one binary with another as its post-op.
std::vector<Variant> add_mul(const Case& c) {
  const Desc desc = plain(c.inputs[0].shape);
  dnnl::post_ops post_ops;
  post_ops.append_binary(algorithm::binary_mul, desc);
  const dnnl::binary::primitive_desc pd(engine(), algorithm::binary_add, desc, desc, desc,
                                        attributes(post_ops));
  const Memory y = empty(desc);
  return {variant(
      "",
      {action<dnnl::binary>(pd, {{DNNL_ARG_SRC_0, input(c, 0)},
                                 {DNNL_ARG_SRC_1, input(c, 1)},
                                 {DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1, input(c, 2)},
                                 {DNNL_ARG_DST, y}})},
      {y})};
}

// gelu(x * scale + shift) + residual.
std::vector<Variant> scale_gelu_residual(const Case& c) {
  const Desc desc = plain(c.inputs[0].shape), row = widened(c.inputs[1].shape, 2);
  dnnl::post_ops post_ops;
  post_ops.append_binary(algorithm::binary_add, row);
  post_ops.append_eltwise(algorithm::eltwise_gelu_tanh, 0.0f, 0.0f);
  post_ops.append_binary(algorithm::binary_add, desc);
  const dnnl::binary::primitive_desc pd(engine(), algorithm::binary_mul, desc, row, desc,
                                        attributes(post_ops));
  const Memory y = empty(desc);
  return {variant("",
                  {action<dnnl::binary>(
                      pd, {{DNNL_ARG_SRC_0, input(c, 0)},
                           {DNNL_ARG_SRC_1, input(c, 1, row)},
                           {DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1, input(c, 2, row)},
                           {DNNL_ARG_ATTR_MULTIPLE_POST_OP(2) | DNNL_ARG_SRC_1, input(c, 3)},
                           {DNNL_ARG_DST, y}})},
                  {y})};
}

}  // namespace

void add_pointwise(Makers& makers) {
  const std::map<std::string, algorithm> unary = {
      {"relu", algorithm::eltwise_relu},     {"exp", algorithm::eltwise_exp},
      {"tanh", algorithm::eltwise_tanh},     {"sigmoid", algorithm::eltwise_logistic},
      {"gelu", algorithm::eltwise_gelu_erf}, {"gelu_tanh", algorithm::eltwise_gelu_tanh},
      {"silu", algorithm::eltwise_swish},    {"log", algorithm::eltwise_log},
      {"sqrt", algorithm::eltwise_sqrt},     {"abs", algorithm::eltwise_abs},
      {"square", algorithm::eltwise_square}};
  for (const auto& [name, kind] : unary) {
    const float alpha = name == "silu" ? 1.0f : 0.0f;
    makers[name] = [kind = kind, alpha](const Case& c) { return eltwise(c, kind, alpha); };
  }
  const std::map<std::string, algorithm> pairs = {
      {"add", algorithm::binary_add},     {"sub", algorithm::binary_sub},
      {"mul", algorithm::binary_mul},     {"div", algorithm::binary_div},
      {"maximum", algorithm::binary_max}, {"minimum", algorithm::binary_min}};
  for (const auto& [name, kind] : pairs) {
    makers[name] = [kind = kind](const Case& c) { return binary(c, kind); };
  }
  makers["relu_grad"] = relu_grad;
  makers["chain_add_mul"] = add_mul;
  makers["chain_scale_gelu_residual"] = scale_gelu_residual;
}

}  // namespace ballast::bench::onednn
