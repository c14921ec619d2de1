// Softmax and the losses made with it.
#pragma once

#include "frontend/ops/reduce.h"
#include "frontend/tensor/operand.h"

#include <vector>

namespace ballast::ops {

Tensor softmax(const Operand& x, int64_t axis = -1);
Tensor log_softmax(const Operand& x, int64_t axis = -1);
// Over several axes together; none: all.
Tensor softmax(const Operand& x, const Axes& axes);
Tensor log_softmax(const Operand& x, const Axes& axes);
// In terms of the result y.
Tensor softmax_grad(const Operand& dy, const Operand& y, int64_t axis = -1);
Tensor log_softmax_grad(const Operand& dy, const Operand& y, int64_t axis = -1);

// Labels as the losses' kernels take them: i32. What i64 ones are beyond it, no logits have a class
// for.
Tensor class_labels(const Operand& labels);

// Losses; logits f32[B, C], labels i32[B] or i64[B]. With smoothing s the target is
// onehot(label) (1 - s) + s / C.
Tensor softmax_cross_entropy(const Operand& logits, const Operand& labels,
                             double label_smoothing = 0);  // f32[B]
Tensor softmax_cross_entropy_grad(const Operand& dloss, const Operand& logits,
                                  const Operand& labels, double label_smoothing = 0);

}  // namespace ballast::ops
