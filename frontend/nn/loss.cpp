#include "frontend/nn/loss.h"

#include "frontend/ops/in_f32.h"
#include "frontend/ops/ops.h"

namespace ballast::nn {

Reduction reduction_named(const std::string& name) {
  if (name == "mean") return Reduction::kMean;
  if (name == "sum") return Reduction::kSum;
  if (name == "none") return Reduction::kNone;
  fail(BALLAST_INVALID_ARGUMENT, "[loss] reduction is \"{}\", expected mean, sum or none", name);
}

Loss::Loss(const std::string& reduction, Where where) : reduction_(reduction) {
  at_line(where, [&] { reduction_named(reduction); });
}

Tensor MSELoss::construct(const Tensor& logits, const Tensor& labels) {
  return ops::mse_loss(logits, labels, reduction());
}

Tensor L1Loss::construct(const Tensor& logits, const Tensor& labels) {
  return ops::l1_loss(logits, labels, reduction());
}

Tensor BCELoss::construct(const Tensor& x, const Tensor& target) {
  return ops::binary_cross_entropy(x, target, reduction());
}

Tensor BCEWithLogitsLoss::construct(const Tensor& x, const Tensor& target) {
  return ops::binary_cross_entropy_with_logits(x, target, reduction());
}

CrossEntropyLoss::CrossEntropyLoss(const std::string& reduction, double label_smoothing,
                                   std::optional<int32_t> ignore_index, Where where)
    : Loss(reduction, where), label_smoothing_(label_smoothing), ignore_index_(ignore_index) {
  if (!(label_smoothing >= 0 && label_smoothing <= 1)) {
    fail(BALLAST_INVALID_ARGUMENT,
         "[CrossEntropyLoss] label_smoothing is {}, expected 0 to 1 (at {})", label_smoothing,
         to_string(where));
  }
}

Tensor CrossEntropyLoss::construct(const Tensor& logits, const Tensor& labels) {
  const Reduction how = reduction_named(reduction());
  if (!ignore_index_) {
    Tensor losses = ops::softmax_cross_entropy(logits, labels, label_smoothing_);
    if (how == Reduction::kNone) return losses;
    return how == Reduction::kMean ? ops::mean(losses) : ops::sum(losses);
  }
  const Tensor counts = ops::not_equal(labels, *ignore_index_);
  // An ignored label may be no class at all.
  const Tensor classes = ops::select(counts, labels, 0);
  Tensor losses = ops::softmax_cross_entropy(logits, classes, label_smoothing_);
  losses = ops::select(counts, losses, 0.0);
  if (how == Reduction::kNone) return losses;
  if (how == Reduction::kSum) return ops::sum(losses);
  return ops::in_f32(losses, [&](const Tensor& wide) {
    return ops::sum(wide) / ops::sum(ops::cast(counts, wide.dtype()));
  });
}

}  // namespace ballast::nn
