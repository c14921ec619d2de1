#include "frontend/nn/optimizer.h"

#include "frontend/ops.h"

namespace ballast::nn {

Optimizer::Optimizer(std::vector<Parameter> parameters, float learning_rate, float weight_decay)
    : parameters_(std::move(parameters)),
      learning_rate_(Tensor::scalar(learning_rate), "learning_rate", /*requires_grad=*/false),
      weight_decay_(weight_decay) {
  states_.push_back(learning_rate_);
}

std::vector<Parameter> Optimizer::add_states(const std::string& prefix) {
  std::vector<Parameter> added;
  for (const Parameter& parameter : parameters_) {
    added.emplace_back(Tensor::zeros(parameter.shape(), parameter.type().dtype),
                       prefix + "." + parameter.name(),
                       /*requires_grad=*/false);
  }
  states_.insert(states_.end(), added.begin(), added.end());
  return added;
}

std::vector<Tensor> Optimizer::operator()(const std::vector<Tensor>& gradients, Where where) {
  CallScope scope(where);
  if (gradients.size() != parameters_.size()) {
    fail(BALLAST_INVALID_ARGUMENT, "[optimizer] given {} gradients for {} parameters (at {})",
         gradients.size(), parameters_.size(), to_string(where));
  }
  std::vector<Tensor> updated;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    Tensor gradient = gradients[i];
    if (weight_decay_ != 0) gradient = gradient + parameters_[i] * weight_decay_;
    updated.push_back(step(i, gradient));
    parameters_[i].assign(updated.back(), where);
  }
  return updated;
}

SGD::SGD(std::vector<Parameter> parameters, float learning_rate, float weight_decay)
    : Optimizer(std::move(parameters), learning_rate, weight_decay) {}

Tensor SGD::step(size_t index, const Tensor& gradient) {
  return ops::apply_gradient_descent(parameters()[index], gradient, learning_rate());
}

Momentum::Momentum(std::vector<Parameter> parameters, float learning_rate, float momentum,
                   float weight_decay, bool use_nesterov)
    : Optimizer(std::move(parameters), learning_rate, weight_decay),
      momentum_(momentum),
      use_nesterov_(use_nesterov),
      accumulators_(add_states("accum")) {}

Tensor Momentum::step(size_t index, const Tensor& gradient) {
  std::vector<Tensor> updated =
      ops::apply_momentum(parameters()[index], accumulators_[index], gradient, learning_rate(),
                          momentum_, use_nesterov_);
  accumulators_[index].assign(updated[1]);
  return updated[0];
}

}  // namespace ballast::nn
