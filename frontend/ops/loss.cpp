#include "frontend/ops/loss.h"

#include "frontend/ops/call.h"
#include "frontend/ops/ops.h"

#include <numeric>

namespace ballast::ops {

namespace {

// The open CallScope's line is the caller's.
Tensor reduced(const char* op, const Tensor& losses, const std::string& reduction) {
  if (reduction == "mean") return reduce_mean(losses);
  if (reduction == "sum") return reduce_sum(losses);
  if (reduction == "none") return losses;
  refuse(Where::here(), "[{}] reduction is \"{}\", expected mean, sum or none", op, reduction);
}

void check_positive(const char* op, const char* name, double value) {
  if (!(value > 0)) {
    refuse(Where::here(), "[{}] {} is {}, expected more than 0", op, name, value);
  }
}

// max(log x, -100), also where the logarithm's slope is infinite: the gradient at 0 is 0.
Tensor ended_log(const Tensor& x) {
  const Tensor is_ended = less_equal(x, 0.0);  // NaN is not
  return select(is_ended, -100.0, maximum(log(select(is_ended, 1.0, x)), -100.0));
}

}  // namespace

Tensor mse_loss(const Operand& x, const Operand& target, const std::string& reduction) {
  CallScope scope(x.where());
  return reduced("mse_loss", square(x - target), reduction);
}

Tensor l1_loss(const Operand& x, const Operand& target, const std::string& reduction) {
  CallScope scope(x.where());
  return reduced("l1_loss", abs(x - target), reduction);
}

Tensor smooth_l1_loss(const Operand& x, const Operand& target, double beta,
                      const std::string& reduction) {
  CallScope scope(x.where());
  check_positive("smooth_l1_loss", "beta", beta);
  Tensor d = abs(x - target);
  return reduced("smooth_l1_loss", select(less(d, beta), square(d) * (0.5 / beta), d - 0.5 * beta),
                 reduction);
}

Tensor huber_loss(const Operand& x, const Operand& target, double delta,
                  const std::string& reduction) {
  CallScope scope(x.where());
  check_positive("huber_loss", "delta", delta);
  Tensor d = abs(x - target);
  Tensor far = (d - 0.5 * delta) * delta;
  return reduced("huber_loss", select(less_equal(d, delta), square(d) * 0.5, far), reduction);
}

Tensor binary_cross_entropy(const Operand& x, const Operand& target, const std::string& reduction) {
  CallScope scope(x.where());
  Tensor p = x.tensor(), t = target.tensor();
  return reduced("binary_cross_entropy", -(t * ended_log(p) + (1.0 - t) * ended_log(1.0 - p)),
                 reduction);
}

Tensor binary_cross_entropy_with_logits(const Operand& x, const Operand& target,
                                        const std::string& reduction) {
  CallScope scope(x.where());
  Tensor logits = x.tensor(), t = target.as(logits.dtype());
  // Not softplus(x) - t x, which cancels where x is large and the answer right.
  return reduced("binary_cross_entropy_with_logits",
                 t * softplus(-logits) + (1.0 - t) * softplus(logits), reduction);
}

Tensor nll_loss(const Operand& x, const Operand& labels, const std::string& reduction) {
  CallScope scope(x.where());
  Tensor log_p = x.tensor(), label = class_labels(labels);
  if (log_p.rank() != 2 || label.rank() != 1 || label.dtype() != DType::kI32 ||
      label.shape()[0] != log_p.shape()[0]) {
    refuse(x.where(), "[nll_loss] takes f32[B, C] and i32[B], got {} and {}",
           to_string(log_p.type()), to_string(label.type()));
  }
  std::vector<int32_t> classes(static_cast<size_t>(log_p.shape()[1]));
  std::iota(classes.begin(), classes.end(), 0);
  Tensor row = Tensor::on_host(classes, {log_p.shape()[1]});
  Tensor is_label = equal(reshape(label, {label.shape()[0], 1}), row);
  return reduced("nll_loss", -reduce_sum(select(is_label, log_p, 0.0), {1}), reduction);
}

}  // namespace ballast::ops
