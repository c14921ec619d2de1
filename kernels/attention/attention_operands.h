// Where the plans of attention find their operands.
#pragma once

#include "kernels/attention/attention.h"
#include "kernels/plan/halide_runtime.h"

#include <vector>

namespace ballast::kernels::attention {

struct ForwardSlots {
  uint32_t q = 0, k = 1, v = 2, mask = 3, out, lse, workspace;
  explicit ForwardSlots(const AttentionConfig& c)
      : out(c.mask == AttentionConfig::Mask::kNone ? 3 : 4) {
    lse = out + 1;
    workspace = out + 2;
  }
};

struct GradSlots {
  uint32_t dout = 0, q = 1, k = 2, v = 3, lse = 4, delta = 5, mask = 6, dq, dk, dv, workspace;
  explicit GradSlots(const AttentionConfig& c)
      : dq(c.mask == AttentionConfig::Mask::kNone ? 6 : 7) {
    dk = dq + 1;
    dv = dq + 2;
    workspace = dq + 3;
  }
};

// Query i attends to keys up to i + diagonal.
inline int32_t diagonal_of(const AttentionConfig& c) {
  return checked_int32(c.causal ? 0 : c.keys);
}

// A mask in the form that is added, as [batch][head][query][key] of all queries and keys.
inline Operand mask_operand(uint32_t slot, const AttentionConfig& c) {
  const int64_t per_head = c.mask_queries * c.keys, per_batch = c.mask_heads * per_head;
  return {slot,
          DType::kF32,
          {c.keys, c.queries, c.heads, c.batch},
          {1, c.mask_queries == 1 ? 0 : c.keys, c.mask_heads == 1 ? 0 : per_head,
           c.mask_batch == 1 ? 0 : per_batch},
          {}};
}

// Of attention_keep, which brings a mask of booleans in slot `mask` to that form.
inline int64_t mask_elements(const AttentionConfig& c) {
  return c.mask_batch * c.mask_heads * c.mask_queries * c.keys;
}
inline std::vector<HostArg> keep_arguments(uint32_t mask, uint32_t target,
                                           const AttentionConfig& c) {
  const Shape rows{c.mask_batch * c.mask_heads * c.mask_queries, c.keys};
  return {dense_operand(mask, DType::kBool, rows), dense_operand(target, DType::kF32, rows)};
}

}  // namespace ballast::kernels::attention
