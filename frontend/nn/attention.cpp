#include "frontend/nn/attention.h"

#include "frontend/nn/initializer.h"
#include "frontend/ops/ops.h"

#include <cmath>

namespace ballast::nn {

MultiHeadAttention::MultiHeadAttention(int64_t embed_dim, int64_t num_heads, double dropout,
                                       bool has_bias, bool is_causal, Where where)
    : embed_dim_(embed_dim), num_heads_(num_heads), dropout_(dropout), is_causal_(is_causal) {
  if (embed_dim < 1 || num_heads < 1 || embed_dim % num_heads != 0) {
    fail(BALLAST_INVALID_ARGUMENT,
         "[MultiHeadAttention] {} heads over {} elements: expected equal heads (at {})", num_heads,
         embed_dim, to_string(where));
  }
  in_proj_weight_ = add("in_proj_weight", XavierUniform()({3 * embed_dim, embed_dim}));
  if (has_bias) in_proj_bias_ = add("in_proj_bias", Tensor::zeros({3 * embed_dim}));
  out_proj_weight_ = add("out_proj.weight", HeUniform(std::sqrt(5.0))({embed_dim, embed_dim}));
  if (has_bias) out_proj_bias_ = add("out_proj.bias", Tensor::zeros({embed_dim}));
}

Tensor MultiHeadAttention::project(const Tensor& x, int64_t first, int64_t count) const {
  if (x.rank() != 3 || x.shape()[2] != embed_dim_) {
    fail(BALLAST_INVALID_ARGUMENT, "[MultiHeadAttention] takes [B, N, {}], got {}", embed_dim_,
         to_string(x.type()));
  }
  auto rows = [&](const Parameter& all) -> Tensor {
    if (count == 3) return all;
    return ops::strided_slice(all, {first * embed_dim_}, {(first + count) * embed_dim_});
  };
  Tensor y = ops::matmul(x, rows(in_proj_weight_), /*transpose_a=*/false, /*transpose_b=*/true);
  if (in_proj_bias_.defined()) y = y + rows(in_proj_bias_);
  const int64_t batch = x.shape()[0], length = x.shape()[1];
  y = ops::reshape(y, {batch, length, count, num_heads_, embed_dim_ / num_heads_});
  return ops::transpose(y, {2, 0, 3, 1, 4});
}

Tensor MultiHeadAttention::attend(const Tensor& q, const Tensor& k, const Tensor& v,
                                  const Tensor& mask) {
  Tensor seen = mask;
  if (mask.defined() && mask.dtype() == DType::kBool) seen = ops::logical_not(mask);
  Tensor out;
  if (is_training() && dropout_ > 0) {
    const double scale = ops::attention_scale(0, q);
    Tensor scores = ops::attention_scores(q, k, seen, is_causal_, scale);
    out = ops::matmul(ops::dropout(ops::softmax(scores), dropout_), v);
  } else {
    out = ops::scaled_dot_product_attention(q, k, v, seen, is_causal_);
  }
  const int64_t batch = q.shape()[0], length = q.shape()[2];
  out = ops::reshape(ops::transpose(out, {0, 2, 1, 3}), {batch, length, embed_dim_});
  out = ops::matmul(out, out_proj_weight_, /*transpose_a=*/false, /*transpose_b=*/true);
  return out_proj_bias_.defined() ? out + out_proj_bias_ : out;
}

Tensor MultiHeadAttention::construct(const Tensor& x) { return construct(x, Tensor()); }

Tensor MultiHeadAttention::construct(const Tensor& x, const Tensor& mask) {
  const std::vector<Tensor> parts = ops::split(project(x, 0, 3), 3);
  return attend(ops::squeeze(parts[0], {0}), ops::squeeze(parts[1], {0}),
                ops::squeeze(parts[2], {0}), mask);
}

Tensor MultiHeadAttention::construct(const Tensor& query, const Tensor& key, const Tensor& value) {
  return construct(query, key, value, Tensor());
}

Tensor MultiHeadAttention::construct(const Tensor& query, const Tensor& key, const Tensor& value,
                                     const Tensor& mask) {
  return attend(ops::squeeze(project(query, 0, 1), {0}), ops::squeeze(project(key, 1, 1), {0}),
                ops::squeeze(project(value, 2, 1), {0}), mask);
}

}  // namespace ballast::nn
