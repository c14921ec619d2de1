// Losses written with other ops, as MindSpore defines them; gradients of any order follow.
// `reduction` of the elements' losses: "mean", "sum" or "none".
#pragma once

#include "frontend/tensor/operand.h"

#include <string>

namespace ballast::ops {

// (x - target)^2
Tensor mse_loss(const Operand& x, const Operand& target, const std::string& reduction = "mean");
// |x - target|
Tensor l1_loss(const Operand& x, const Operand& target, const std::string& reduction = "mean");
// With d = |x - target|: d^2 / (2 beta) below beta, from there d - beta / 2.
Tensor smooth_l1_loss(const Operand& x, const Operand& target, double beta = 1,
                      const std::string& reduction = "mean");
// d^2 / 2 up to delta, beyond it delta (d - delta / 2).
Tensor huber_loss(const Operand& x, const Operand& target, double delta = 1,
                  const std::string& reduction = "mean");
// -(t log x + (1 - t) log(1 - x)) for x in [0, 1]; the logarithms end at -100, where their gradient
// is 0, so that a sure mistake costs much and not infinity.
Tensor binary_cross_entropy(const Operand& x, const Operand& target,
                            const std::string& reduction = "mean");
// The same of sigmoid(x), exact for any finite x: log(1 + exp(x)) - t x.
Tensor binary_cross_entropy_with_logits(const Operand& x, const Operand& target,
                                        const std::string& reduction = "mean");
// -x[label] by row; x f32[B, C] are logarithms of probabilities, labels i32[B] or
// i64[B]. A label outside [0, C) costs nothing.
Tensor nll_loss(const Operand& x, const Operand& labels, const std::string& reduction = "mean");

}  // namespace ballast::ops
