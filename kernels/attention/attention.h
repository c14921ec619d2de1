// Scaled dot product attention, forward and backward, without storing the scores, but those of a
// strip of queries on GPUs and of single queries on CPUs: workspaces are linear in the sequence
// lengths (and as large as the mask, where one is given).
#pragma once

#include "kernels/plan/plan.h"

namespace ballast::kernels {

// out = softmax(scale q k' + mask) v for each of batch x heads.
struct AttentionConfig {
  enum class Mask { kNone, kKeep, kAdd };

  int64_t batch = 1, heads = 1;
  int64_t queries = 0, keys = 0;
  int64_t depth = 0;        // elements of a row of q and k
  int64_t value_depth = 0;  // elements of a row of v
  float scale = 1;
  bool causal = false;  // query i attends to keys 0..i
  // [mask_batch, mask_heads, mask_queries, keys], each of the first three whole or 1: bool, true to
  // attend (kKeep), or f32, added to the scores (kAdd).
  Mask mask = Mask::kNone;
  int64_t mask_batch = 1, mask_heads = 1, mask_queries = 1;
};

// Inputs q [batch, heads, queries, depth], k [.., keys, depth], v [.., keys, value_depth], mask if
// there is one; outputs out [.., queries, value_depth] and lse [.., queries], the logarithm of the
// sum of exp(scores). A query that may attend to nothing gives zeros, and lse = -infinity.
Plan plan_attention(DeviceClass device_class, const AttentionConfig& config);

// Inputs dout (like out), q, k, v, lse, delta [.., queries] = sum of dout * out over a row (minus
// lse's cotangent, if it has one), mask; outputs dq, dk, dv. Sums are in a fixed order.
Plan plan_attention_grad(DeviceClass device_class, const AttentionConfig& config);

}  // namespace ballast::kernels
