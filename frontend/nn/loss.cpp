#include "frontend/nn/loss.h"

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
  return ops::binary_cross_entropy(x, target, options_);
}

Tensor BCEWithLogitsLoss::construct(const Tensor& x, const Tensor& target) {
  return ops::binary_cross_entropy_with_logits(x, target, options_);
}

CrossEntropyLoss::CrossEntropyLoss(const ops::ClassLossOptions& options, Where where)
    : Loss(options.reduction, where), options_(options) {
  if (!(options.label_smoothing >= 0 && options.label_smoothing <= 1)) {
    fail(BALLAST_INVALID_ARGUMENT,
         "[CrossEntropyLoss] label_smoothing is {}, expected 0 to 1 (at {})",
         options.label_smoothing, to_string(where));
  }
}

Tensor CrossEntropyLoss::construct(const Tensor& logits, const Tensor& labels) {
  return ops::cross_entropy(logits, labels, options_);
}

Tensor NLLLoss::construct(const Tensor& x, const Tensor& labels) {
  return ops::nll_loss(x, labels, options_);
}

}  // namespace ballast::nn
