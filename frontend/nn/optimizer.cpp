#include "frontend/nn/optimizer.h"

#include "frontend/ops/ops.h"

#include <map>
#include <set>
#include <tuple>

namespace ballast::nn {

namespace {

bool decays_by_name(const Parameter& parameter) {
  return parameter.name().find("beta") == std::string::npos &&
         parameter.name().find("gamma") == std::string::npos;
}

void check_parameters(const std::vector<Parameter>& parameters) {
  if (parameters.empty()) {
    fail(BALLAST_INVALID_ARGUMENT, "[optimizer] there are no parameters to train");
  }
  std::set<const void*> seen;
  for (const Parameter& parameter : parameters) {
    if (!parameter.requires_grad()) {
      fail(BALLAST_INVALID_ARGUMENT,
           "[optimizer] parameter {} is frozen: its requires_grad is off\n  hint: "
           "Cell::trainable_params() leaves such parameters out",
           parameter.name());
    }
    if (!seen.insert(parameter.id()).second) {
      fail(BALLAST_INVALID_ARGUMENT, "[optimizer] parameter {} is given twice", parameter.name());
    }
  }
}

}  // namespace

Optimizer::Optimizer(ParameterGroups groups, const LearningRate& learning_rate, float weight_decay,
                     Decay decay)
    : compiled_(std::make_shared<JitCache>(JitOptions{}, "optimizer")) {
  add_rate(learning_rate, "learning_rate");
  std::vector<size_t> rates;  // by parameter
  for (size_t number = 0; number < groups.groups.size(); ++number) {
    const ParameterGroup& group = groups.groups[number];
    const size_t rate = group.learning_rate ? add_rate(*group.learning_rate,
                                                       "learning_rate." + std::to_string(number))
                                            : 0;
    for (const Parameter& parameter : group.parameters) {
      const bool decays = groups.is_grouped || decays_by_name(parameter);
      parameters_.push_back(parameter);
      rates.push_back(rate);
      gradient_decays_.push_back(decays ? group.weight_decay.value_or(weight_decay) : 0);
    }
  }
  at_line(groups.where, [&] { check_parameters(parameters_); });
  sort_into_kinds(decay, rates);
}

size_t Optimizer::add_rate(const LearningRate& rate, const std::string& name) {
  if (rate.schedule) {
    rates_.push_back({{}, rate.schedule});
    add_global_step();
  } else {
    rates_.push_back({add_scalar(name, rate.constant), {}});
  }
  return rates_.size() - 1;
}

void Optimizer::sort_into_kinds(Decay decay, const std::vector<size_t>& rates) {
  std::map<std::tuple<size_t, float, DType>, std::vector<size_t>> members;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const float in_op = decay == Decay::kInOp ? gradient_decays_[i] : 0;
    members[{rates[i], in_op, parameters_[i].type().dtype}].push_back(i);
    if (decay == Decay::kInOp) gradient_decays_[i] = 0;
  }
  for (auto& [key, list] : members) {
    kinds_.push_back({std::move(list), std::get<0>(key), std::get<1>(key)});
  }
}

void Optimizer::set_learning_rate(float value, Where where) {
  if (!learning_rate().defined()) {
    fail(BALLAST_FAILED_PRECONDITION,
         "[set_learning_rate] the learning rate is a schedule, not a number (at {})",
         to_string(where));
  }
  learning_rate().assign(Tensor::scalar(value));
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

void Optimizer::add_global_step() {
  if (global_step_.defined()) return;
  global_step_ = Parameter(Tensor::scalar(0, DType::kI32), "global_step", /*requires_grad=*/false);
  states_.push_back(global_step_);
}

std::vector<Tensor> Optimizer::apply(const char* op, const std::vector<States>& states,
                                     const std::vector<Tensor>& gradients, const Scalars& scalars,
                                     const Attrs& attrs) {
  std::vector<Tensor> rates;
  for (const Rate& rate : rates_) {
    rates.push_back(rate.schedule ? rate.schedule(global_step_) : rate.constant.value());
  }
  std::vector<Tensor> updated(parameters_.size());
  for (const Kind& kind : kinds_) {
    std::vector<Tensor> tensors;
    for (size_t i : kind.members) {
      tensors.push_back(parameters_[i]);
      for (const States& state : states) tensors.push_back(state[i]);
      tensors.push_back(gradients[i]);
    }
    const std::vector<Tensor> results = ops::apply_to_all(
        op, tensors, states.size() + 2, scalars(rates[kind.rate], kind.weight_decay), attrs);
    for (size_t n = 0; n < kind.members.size(); ++n) {
      const size_t first = n * (states.size() + 1);
      updated[kind.members[n]] = results[first];
      for (size_t k = 0; k < states.size(); ++k) {
        states[k][kind.members[n]].assign(results[first + 1 + k]);
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
  if (!compiles_calls()) return update(gradients, where);
  auto updated = [&](const std::vector<Tensor>& traced) { return update(traced, where); };
  return internal::call_compiled(*compiled_, updated, where, gradients);
}

std::vector<Tensor> Optimizer::update(const std::vector<Tensor>& gradients, const Where& where) {
  std::vector<Tensor> decayed = gradients;
  for (size_t i = 0; i < decayed.size(); ++i) {
    const float decay = gradient_decays_[i];
    if (decay != 0) decayed[i] = decayed[i] + parameters_[i] * decay;
  }
  std::vector<Tensor> updated = step(decayed);
  for (size_t i = 0; i < updated.size(); ++i) parameters_[i].assign(updated[i], where);
  if (global_step_.defined()) global_step_.assign(global_step_ + 1);
  return updated;
}

SGD::SGD(ParameterGroups parameters, const LearningRate& learning_rate, float momentum,
         float dampening, float weight_decay, bool nesterov)
    : Optimizer(std::move(parameters), learning_rate, weight_decay),
      momentum_(momentum),
      dampening_(dampening),
      nesterov_(nesterov) {
  if (nesterov && (momentum <= 0 || dampening != 0)) {
    fail(BALLAST_INVALID_ARGUMENT,
         "[SGD] Nesterov with momentum {} and dampening {}: expected a momentum, no dampening (at "
         "{})",
         momentum, dampening, to_string(parameters.where));
  }
  if (momentum != 0) accumulators_ = add_states("accum", /*has_parameters_dtype=*/true);
  if (momentum != 0 && dampening != 0) add_global_step();
}

std::vector<Tensor> SGD::step(const std::vector<Tensor>& gradients) {
  if (momentum_ == 0) {
    return apply("apply_gradient_descent", {}, gradients,
                 [](const Tensor& rate, float) { return std::vector<Tensor>{rate}; });
  }
  std::vector<Tensor> damped = gradients;
  if (dampening_ != 0) {
    const Tensor part =
        ops::select(ops::equal(global_step(), 0), 1.0, Tensor::scalar(1 - dampening_));
    damped = ops::scale_tensors(gradients, part);
  }
  return apply("apply_momentum", {accumulators_}, damped,
               [this](const Tensor& rate, float) {
                 return std::vector<Tensor>{rate, Tensor::scalar(momentum_)};
               },
               {{"use_nesterov", int64_t{nesterov_}}});
}

Momentum::Momentum(ParameterGroups parameters, const LearningRate& learning_rate, float momentum,
                   float weight_decay, bool use_nesterov)
    : Optimizer(std::move(parameters), learning_rate, weight_decay),
      momentum_(momentum),
      use_nesterov_(use_nesterov),
      accumulators_(add_states("accum", /*has_parameters_dtype=*/true)) {}

std::vector<Tensor> Momentum::step(const std::vector<Tensor>& gradients) {
  return apply("apply_momentum", {accumulators_}, gradients,
               [this](const Tensor& rate, float) {
                 return std::vector<Tensor>{rate, Tensor::scalar(momentum_)};
               },
               {{"use_nesterov", int64_t{use_nesterov_}}});
}

MomentOptimizer::MomentOptimizer(ParameterGroups parameters, const LearningRate& learning_rate,
                                 float beta1, float beta2, float epsilon, float weight_decay,
                                 Decay decay)
    : Optimizer(std::move(parameters), learning_rate, weight_decay, decay),
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

Adam::Adam(ParameterGroups parameters, const LearningRate& learning_rate, float beta1, float beta2,
           float epsilon, float weight_decay, bool use_nesterov)
    : MomentOptimizer(std::move(parameters), learning_rate, beta1, beta2, epsilon, weight_decay,
                      Decay::kInGradient),
      use_nesterov_(use_nesterov) {
  add_powers();
}

std::vector<Tensor> Adam::step(const std::vector<Tensor>& gradients) {
  const std::vector<Tensor> powers = next_powers();
  return apply("apply_adam", moments(), gradients,
               [&](const Tensor& rate, float) { return joined(joined(powers, {rate}), betas()); },
               {{"use_nesterov", int64_t{use_nesterov_}}});
}

AdamWeightDecay::AdamWeightDecay(ParameterGroups parameters, const LearningRate& learning_rate,
                                 float beta1, float beta2, float epsilon, float weight_decay)
    : MomentOptimizer(std::move(parameters), learning_rate, beta1, beta2, epsilon, weight_decay,
                      Decay::kInOp) {}

std::vector<Tensor> AdamWeightDecay::step(const std::vector<Tensor>& gradients) {
  return apply("apply_adam_weight_decay", moments(), gradients,
               [this](const Tensor& rate, float decay) {
                 return joined(joined({rate}, betas()), {Tensor::scalar(decay)});
               });
}

AdamW::AdamW(ParameterGroups parameters, const LearningRate& learning_rate, float beta1,
             float beta2, float epsilon, float weight_decay)
    : MomentOptimizer(std::move(parameters), learning_rate, beta1, beta2, epsilon, weight_decay,
                      Decay::kInOp) {
  add_powers();
}

std::vector<Tensor> AdamW::step(const std::vector<Tensor>& gradients) {
  const std::vector<Tensor> powers = next_powers();
  return apply("apply_adamw", moments(), gradients, [&](const Tensor& rate, float decay) {
    return joined(joined(joined(powers, {rate}), betas()), {Tensor::scalar(decay)});
  });
}

}  // namespace ballast::nn
