// Losses written with other ops, as MindSpore defines them; gradients of any order follow.
// `reduction` of the elements' losses: "mean", "sum" or "none".
#pragma once

#include "frontend/tensor/operand.h"

#include <optional>
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
// What losses of probabilities may be given beside the reduction. Both factors broadcast to the
// losses' shape, without changing it: `weight` of every loss, `pos_weight` of target t's part. The
// mean is over the number of losses.
struct BinaryLossOptions {
  std::string reduction = "mean";
  Tensor weight = {}, pos_weight = {};  // undefined: 1
};
// -(t log x + (1 - t) log(1 - x)) for x in [0, 1]; the logarithms end at -100, where their gradient
// is 0, so that a sure mistake costs much and not infinity.
Tensor binary_cross_entropy(const Operand& x, const Operand& target,
                            const std::string& reduction = "mean");
Tensor binary_cross_entropy(const Operand& x, const Operand& target,
                            const BinaryLossOptions& options);
// The same of sigmoid(x), exact for any finite x: log(1 + exp(x)) - t x.
Tensor binary_cross_entropy_with_logits(const Operand& x, const Operand& target,
                                        const std::string& reduction = "mean");
Tensor binary_cross_entropy_with_logits(const Operand& x, const Operand& target,
                                        const BinaryLossOptions& options);
// target (log target - x), x being logarithms of probabilities, and 0 where target is 0; of
// log_target: exp(target) (target - x). reduction may also be "batchmean": the sum over the extent
// of axis 0.
Tensor kl_div(const Operand& x, const Operand& target, const std::string& reduction = "mean",
              bool log_target = false);

// What losses of class numbers may be given. With w the weight of a label's class, 0 where the
// label is ignore_index, a loss is (1 - s) w loss[label] + s / C sum_c(weight_c loss[c]) for
// smoothing s (the sum too is 0 for an ignored label), and the mean is the sum of losses over that
// of the w, as in PyTorch.
struct ClassLossOptions {
  std::string reduction = "mean";
  Tensor weight = {};  // [C] of x's dtype; undefined: all 1
  std::optional<int64_t> ignore_index = std::nullopt;
  double label_smoothing = 0;
};
// -x[label] by row; x f[B, C] or f[B, C, ...] are logarithms of probabilities, labels i32 or i64 of
// that shape without C. A label outside [0, C) costs nothing; it counts in the mean unless options
// give weights or an ignore_index.
Tensor nll_loss(const Operand& x, const Operand& labels, const std::string& reduction = "mean");
Tensor nll_loss(const Operand& x, const Operand& labels, const ClassLossOptions& options);
// The same of log_softmax(logits) over axis 1, but that a label outside [0, C) gives NaN. Labels
// may also be probabilities, of logits' type; their mean is over the number of rows.
Tensor cross_entropy(const Operand& logits, const Operand& labels,
                     const ClassLossOptions& options = {});

}  // namespace ballast::ops
