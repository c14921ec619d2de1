#include "frontend/nn/loss.h"

#include "frontend/ops.h"

namespace ballast::nn {

Reduction reduction_named(const std::string& name) {
  if (name == "mean") return Reduction::kMean;
  if (name == "sum") return Reduction::kSum;
  if (name == "none") return Reduction::kNone;
  fail(BALLAST_INVALID_ARGUMENT, "[loss] reduction is \"{}\", expected mean, sum or none", name);
}

namespace {

Tensor reduced(const Tensor& losses, Reduction reduction) {
  if (reduction == Reduction::kMean) return ops::mean(losses);
  return reduction == Reduction::kSum ? ops::sum(losses) : losses;
}

}  // namespace

Tensor MSELoss::operator()(const Operand& logits, const Operand& labels) const {
  CallScope scope(logits.where());
  return reduced(ops::square(logits - labels), reduction_);
}

Tensor CrossEntropyLoss::operator()(const Operand& logits, const Operand& labels) const {
  CallScope scope(logits.where());
  return reduced(ops::softmax_cross_entropy(logits, labels), reduction_);
}

}  // namespace ballast::nn
