#include "frontend/ops/loss.h"

#include "frontend/ops/call.h"
#include "frontend/ops/ops.h"
#include "frontend/ops/reduced.h"

namespace ballast::ops {

Tensor reduced(const char* op, const Tensor& losses, const std::string& reduction) {
  if (reduction == "mean") return reduce_mean(losses);
  if (reduction == "sum") return reduce_sum(losses);
  if (reduction == "none") return losses;
  refuse(Where::here(), "[{}] reduction is \"{}\", expected mean, sum or none", op, reduction);
}

namespace {

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

// x times a factor of the options, which must leave its shape.
Tensor scaled(const char* op, const char* name, const Tensor& x, const Tensor& factor) {
  if (!factor.defined()) return x;
  const Tensor product = x * factor;
  if (product.shape() == x.shape()) return product;
  refuse(Where::here(), "[{}] {} is {}, expected what broadcasts to the losses' shape {}", op, name,
         to_string(factor.type()), to_string(x.shape()));
}

// Of what target t and 1 - t pay.
Tensor binary_loss(const char* op, const Tensor& if_true, const Tensor& if_false,
                   const BinaryLossOptions& options) {
  const Tensor losses = scaled(op, "pos_weight", if_true, options.pos_weight) + if_false;
  return reduced(op, scaled(op, "weight", losses, options.weight), options.reduction);
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

Tensor binary_cross_entropy(const Operand& x, const Operand& target,
                            const BinaryLossOptions& options) {
  CallScope scope(x.where());
  Tensor p = x.tensor(), t = target.tensor();
  return binary_loss("binary_cross_entropy", -(t * ended_log(p)), -((1.0 - t) * ended_log(1.0 - p)),
                     options);
}

Tensor binary_cross_entropy(const Operand& x, const Operand& target, const std::string& reduction) {
  return binary_cross_entropy(x, target, BinaryLossOptions{reduction});
}

Tensor binary_cross_entropy_with_logits(const Operand& x, const Operand& target,
                                        const BinaryLossOptions& options) {
  CallScope scope(x.where());
  Tensor logits = x.tensor(), t = target.as(logits.dtype());
  // Not softplus(x) - t x, which cancels where x is large and the answer right.
  return binary_loss("binary_cross_entropy_with_logits", t * softplus(-logits),
                     (1.0 - t) * softplus(logits), options);
}

Tensor binary_cross_entropy_with_logits(const Operand& x, const Operand& target,
                                        const std::string& reduction) {
  return binary_cross_entropy_with_logits(x, target, BinaryLossOptions{reduction});
}

Tensor kl_div(const Operand& x, const Operand& target, const std::string& reduction,
              bool log_target) {
  CallScope scope(x.where());
  const Tensor log_q = x.tensor(), p = target.as(log_q.dtype());
  Tensor losses;
  if (log_target) {
    losses = exp(p) * (p - log_q);
  } else {
    const Tensor is_zero = equal(p, 0.0), safe = select(is_zero, 1.0, p);
    losses = select(is_zero, 0.0, safe * (log(safe) - log_q));
  }
  if (reduction != "batchmean") return reduced("kl_div", losses, reduction);
  if (losses.rank() < 1) {
    refuse(x.where(), "[kl_div] reduction is \"batchmean\", but the losses are {}",
           to_string(losses.type()));
  }
  return reduce_sum(losses) / static_cast<double>(losses.shape()[0]);
}

}  // namespace ballast::ops
