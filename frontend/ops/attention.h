// Scaled dot product attention.
#pragma once

#include "frontend/tensor/operand.h"

#include <vector>

namespace ballast::ops {

// softmax(scale q k' + mask) v, where q is [..., queries, depth], k [..., keys, depth] and
// v [..., keys, value_depth]; scale 0 stands for 1 / sqrt(depth). The mask broadcasts to
// [..., queries, keys]: bool, true where a query attends to a key (PyTorch's sense), or floats that
// are added to the scores. causal: query i attends to keys 0..i. What attends to nothing is zero.
// Neither this nor its gradient stores the scores. The gradient of a mask of floats does.
Tensor scaled_dot_product_attention(const Operand& q, const Operand& k, const Operand& v,
                                    const Tensor& mask = {}, bool causal = false, double scale = 0);

// The same, and the logarithm of each query's sum of exp(scores) [..., queries], f32: -infinity
// where it attends to nothing.
struct Attention {
  Tensor out, lse;
};
Attention attention_with_lse(const Operand& q, const Operand& k, const Operand& v,
                             const Tensor& mask = {}, bool causal = false, double scale = 0);

// Both written with ordinary ops, which store the scores: what the fused ops are compared with.
Attention attention_composed(const Operand& q, const Operand& k, const Operand& v,
                             const Tensor& mask = {}, bool causal = false, double scale = 0);

// dq, dk and dv. delta [..., queries] = sum of dout * out over the last dimension, less the
// cotangent of lse.
std::vector<Tensor> attention_grad(const Operand& dout, const Operand& q, const Operand& k,
                                   const Operand& v, const Operand& lse, const Operand& delta,
                                   const Tensor& mask = {}, bool causal = false, double scale = 0);

// The mask written out as far as the op needs it: it has all keys, and the leading dimensions along
// which it repeats lie together.
Tensor attention_mask(const Tensor& mask, const Tensor& q, const Tensor& k);

// scale q k' + mask, -infinity where hidden, f32 (a part of the gradients).
Tensor attention_scores(const Tensor& q, const Tensor& k, const Tensor& mask, bool causal,
                        double scale);
double attention_scale(double scale, const Tensor& q);  // with 0 replaced

}  // namespace ballast::ops
