#include "frontend/nn/optimizer.h"

#include "frontend/ops.h"

#include <map>

namespace ballast::nn {

Optimizer::Optimizer(std::vector<Parameter> parameters, float learning_rate, float weight_decay)
    : parameters_(std::move(parameters)),
      learning_rate_(Tensor::scalar(learning_rate), "learning_rate", /*requires_grad=*/false),
      weight_decay_(weight_decay) {
  states_.push_back(learning_rate_);
}

Optimizer::States Optimizer::add_states(const std::string& prefix, bool has_parameters_dtype) {
  States added;
  for (const Parameter& parameter : parameters_) {
    const DType dtype = has_parameters_dtype ? parameter.type().dtype : DType::kF32;
    added.emplace_back(Tensor::zeros(parameter.shape(), dtype), prefix + "." + parameter.name(),
                       /*requires_grad=*/false);
  }
  states_.insert(states_.end(), added.begin(), added.end());
  return added;
}

Parameter Optimizer::add_scalar(const std::string& name, float value) {
  states_.emplace_back(Tensor::scalar(value), name, /*requires_grad=*/false);
  return states_.back();
}

std::vector<Tensor> Optimizer::apply(const char* op, const std::vector<States>& states,
                                     const std::vector<Tensor>& gradients,
                                     const std::vector<Tensor>& scalars, const Attrs& attrs) {
  std::map<DType, std::vector<size_t>> numbers;  // an op's parameters have one dtype
  for (size_t i = 0; i < parameters_.size(); ++i) {
    numbers[parameters_[i].type().dtype].push_back(i);
  }
  std::vector<Tensor> updated(parameters_.size());
  for (const auto& [dtype, members] : numbers) {
    std::vector<Tensor> tensors;
    for (size_t i : members) {
      tensors.push_back(parameters_[i]);
      for (const States& state : states) tensors.push_back(state[i]);
      tensors.push_back(gradients[i]);
    }
    const std::vector<Tensor> results =
        ops::apply_to_all(op, tensors, states.size() + 2, scalars, attrs);
    for (size_t n = 0; n < members.size(); ++n) {
      const size_t first = n * (states.size() + 1);
      updated[members[n]] = results[first];
      for (size_t k = 0; k < states.size(); ++k) {
        states[k][members[n]].assign(results[first + 1 + k]);
      }
    }
  }
  return updated;
}

std::vector<Tensor> Optimizer::operator()(const std::vector<Tensor>& gradients, Where where) {
  CallScope scope(where);
  if (gradients.size() != parameters_.size()) {
    fail(BALLAST_INVALID_ARGUMENT, "[optimizer] given {} gradients for {} parameters (at {})",
         gradients.size(), parameters_.size(), to_string(where));
  }
  std::vector<Tensor> decayed = gradients;
  if (weight_decay_ != 0) {
    for (size_t i = 0; i < decayed.size(); ++i) {
      decayed[i] = decayed[i] + parameters_[i] * weight_decay_;
    }
  }
  std::vector<Tensor> updated = step(decayed);
  for (size_t i = 0; i < updated.size(); ++i) parameters_[i].assign(updated[i], where);
  return updated;
}

SGD::SGD(std::vector<Parameter> parameters, float learning_rate, float weight_decay)
    : Optimizer(std::move(parameters), learning_rate, weight_decay) {}

std::vector<Tensor> SGD::step(const std::vector<Tensor>& gradients) {
  return apply("apply_gradient_descent", {}, gradients, {learning_rate()});
}

Momentum::Momentum(std::vector<Parameter> parameters, float learning_rate, float momentum,
                   float weight_decay, bool use_nesterov)
    : Optimizer(std::move(parameters), learning_rate, weight_decay),
      momentum_(momentum),
      use_nesterov_(use_nesterov),
      accumulators_(add_states("accum", /*has_parameters_dtype=*/true)) {}

std::vector<Tensor> Momentum::step(const std::vector<Tensor>& gradients) {
  return apply("apply_momentum", {accumulators_}, gradients,
               {learning_rate(), Tensor::scalar(momentum_)},
               {{"use_nesterov", int64_t{use_nesterov_}}});
}

MomentOptimizer::MomentOptimizer(std::vector<Parameter> parameters, float learning_rate,
                                 float beta1, float beta2, float epsilon, float weight_decay)
    : Optimizer(std::move(parameters), learning_rate, weight_decay),
      beta1_(beta1),
      beta2_(beta2),
      epsilon_(epsilon),
      first_(add_states("moment1")),
      second_(add_states("moment2")) {}

void MomentOptimizer::add_powers() {
  beta1_power_ = add_scalar("beta1_power", 1);
  beta2_power_ = add_scalar("beta2_power", 1);
}

std::vector<Tensor> MomentOptimizer::next_powers() {
  std::vector<Tensor> powers = {beta1_power_ * beta1_, beta2_power_ * beta2_};
  beta1_power_.assign(powers[0]);
  beta2_power_.assign(powers[1]);
  return powers;
}

std::vector<Tensor> MomentOptimizer::betas() const {
  return {Tensor::scalar(beta1_), Tensor::scalar(beta2_), Tensor::scalar(epsilon_)};
}

namespace {

std::vector<Tensor> joined(std::vector<Tensor> first, const std::vector<Tensor>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

}  // namespace

Adam::Adam(std::vector<Parameter> parameters, float learning_rate, float beta1, float beta2,
           float epsilon, float weight_decay, bool use_nesterov)
    : MomentOptimizer(std::move(parameters), learning_rate, beta1, beta2, epsilon, weight_decay),
      use_nesterov_(use_nesterov) {
  add_powers();
}

std::vector<Tensor> Adam::step(const std::vector<Tensor>& gradients) {
  return apply("apply_adam", moments(), gradients,
               joined(joined(next_powers(), {learning_rate()}), betas()),
               {{"use_nesterov", int64_t{use_nesterov_}}});
}

AdamWeightDecay::AdamWeightDecay(std::vector<Parameter> parameters, float learning_rate,
                                 float beta1, float beta2, float epsilon, float weight_decay)
    : MomentOptimizer(std::move(parameters), learning_rate, beta1, beta2, epsilon, 0),
      decay_(weight_decay) {}

std::vector<Tensor> AdamWeightDecay::step(const std::vector<Tensor>& gradients) {
  return apply("apply_adam_weight_decay", moments(), gradients,
               joined(joined({learning_rate()}, betas()), {Tensor::scalar(decay_)}));
}

AdamW::AdamW(std::vector<Parameter> parameters, float learning_rate, float beta1, float beta2,
             float epsilon, float weight_decay)
    : MomentOptimizer(std::move(parameters), learning_rate, beta1, beta2, epsilon, 0),
      decay_(weight_decay) {
  add_powers();
}

std::vector<Tensor> AdamW::step(const std::vector<Tensor>& gradients) {
  return apply(
      "apply_adamw", moments(), gradients,
      joined(joined(joined(next_powers(), {learning_rate()}), betas()), {Tensor::scalar(decay_)}));
}

}  // namespace ballast::nn
