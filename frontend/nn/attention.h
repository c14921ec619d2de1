// Attention as a cell.
#pragma once

#include "frontend/nn/cell.h"

namespace ballast::nn {

// mindspore.nn.MultiheadAttention with batch_first, on the fused attention op: query [B, N, E], key
// and value [B, S, E] are projected, split into heads, attended and projected back; one input is
// all three. The mask broadcasts to [B, heads, N, S]: bool, true where a query must *not* look
// (MindSpore's sense; the op's is the opposite), or floats that are added to the scores.
// Parameters: in_proj_weight [3 E, E] (xavier uniform), in_proj_bias [3 E] (zeros),
// out_proj.weight, out_proj.bias (zeros). With dropout the probabilities are stored in training.
class MultiHeadAttention : public Cell {
 public:
  MultiHeadAttention(int64_t embed_dim, int64_t num_heads, double dropout = 0, bool has_bias = true,
                     bool is_causal = false, Where where = Where::here());
  using Cell::construct;
  Tensor construct(const Tensor& x) override;
  Tensor construct(const Tensor& x, const Tensor& mask) override;
  Tensor construct(const Tensor& query, const Tensor& key, const Tensor& value) override;
  Tensor construct(const Tensor& query, const Tensor& key, const Tensor& value,
                   const Tensor& mask) override;

 private:
  // x times rows [first, first + count) E of in_proj_weight, with their bias: [count, B, H, N, D].
  Tensor project(const Tensor& x, int64_t first, int64_t count) const;
  Tensor attend(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask);

  int64_t embed_dim_, num_heads_;
  double dropout_;
  bool is_causal_;
  Parameter in_proj_weight_, in_proj_bias_, out_proj_weight_, out_proj_bias_;
};

}  // namespace ballast::nn
