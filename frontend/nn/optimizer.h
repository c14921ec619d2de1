// Optimizers: called with one gradient per parameter, in the order of parameters(), they assign the
// parameters and return the new values (for depend). A step is one op over all parameters of a
// kind, which runs in few launches (kernels/plan/merge_launches.h). Formulas and defaults are
// those of mindspore.nn (2.10), with its rule for weight decay: where parameters are not grouped,
// those with "beta" or "gamma" in their names do not decay. Learning rates lie on the device: a
// constant one is a parameter, so that changing it compiles nothing anew; with a schedule the
// optimizer counts its steps in a parameter too. In GRAPH_MODE a call outside of jit is compiled.
#pragma once

#include "frontend/modes/jit.h"
#include "frontend/nn/learning_rate.h"
#include "frontend/tensor/attrs.h"
#include "frontend/tensor/operand.h"

#include <functional>
#include <vector>

namespace ballast::nn {

class Optimizer {
 public:
  virtual ~Optimizer() = default;

  std::vector<Tensor> operator()(const std::vector<Tensor>& gradients, Where where = Where::here());

  const std::vector<Parameter>& parameters() const { return parameters_; }
  // Everything it keeps between steps: learning rates, accumulators, the step.
  const std::vector<Parameter>& states() const { return states_; }
  // The constant rate of parameters in no group of their own; undefined with a schedule.
  const Parameter& learning_rate() const { return rates_[0].constant; }
  // An error with a schedule.
  void set_learning_rate(float value, Where where = Where::here());
  // How many steps were made (i32[]); undefined without a schedule.
  const Parameter& global_step() const { return global_step_; }

 protected:
  using States = std::vector<Parameter>;  // one per parameter
  // The scalars of a step's op, given a group's rate and decay.
  using Scalars = std::function<std::vector<Tensor>(const Tensor& rate, float weight_decay)>;
  enum class Decay { kInGradient, kInOp };  // who applies it: operator(), or the step's op

  Optimizer(ParameterGroups groups, const LearningRate& learning_rate, float weight_decay,
            Decay decay = Decay::kInGradient);

  // Assigns the states and returns the parameters' new values.
  virtual std::vector<Tensor> step(const std::vector<Tensor>& gradients) = 0;
  // A state of each parameter's shape, zero at first. f32 unless it has the parameters' dtype.
  States add_states(const std::string& prefix, bool has_parameters_dtype = false);
  Parameter add_scalar(const std::string& name, float value);
  // Counts steps from now on.
  void add_global_step();
  // The op on all parameters with these states; assigns the states, returns the parameters.
  std::vector<Tensor> apply(const char* op, const std::vector<States>& states,
                            const std::vector<Tensor>& gradients, const Scalars& scalars,
                            const Attrs& attrs = {});

 private:
  struct Rate {
    Parameter constant;
    LearningRateSchedule schedule;
  };
  // Parameters that one op can treat alike.
  struct Kind {
    std::vector<size_t> members;
    size_t rate;
    float weight_decay;
  };
  std::vector<Tensor> update(const std::vector<Tensor>& gradients, const Where& where);
  size_t add_rate(const LearningRate& rate, const std::string& name);
  void sort_into_kinds(Decay decay, const std::vector<size_t>& rates);

  std::vector<Parameter> parameters_;
  std::vector<Parameter> states_;
  std::vector<Rate> rates_;  // the default first
  std::vector<Kind> kinds_;
  std::vector<float> gradient_decays_;  // by parameter
  Parameter global_step_;
  std::shared_ptr<JitCache> compiled_;  // for GRAPH_MODE
};

// param - lr grad; with momentum param - lr a, a' = momentum a + (1 - dampening) grad (grad at the
// first step), with Nesterov param - lr (grad + momentum a').
class SGD : public Optimizer {
 public:
  explicit SGD(ParameterGroups parameters, const LearningRate& learning_rate = 0.1,
               float momentum = 0.0f, float dampening = 0.0f, float weight_decay = 0.0f,
               bool nesterov = false);

 private:
  std::vector<Tensor> step(const std::vector<Tensor>& gradients) override;

  float momentum_, dampening_;
  bool nesterov_;
  States accumulators_;
};

// accum' = momentum accum + grad; param - lr accum' (or lr (grad + momentum accum') with Nesterov)
class Momentum : public Optimizer {
 public:
  Momentum(ParameterGroups parameters, const LearningRate& learning_rate, float momentum,
           float weight_decay = 0.0f, bool use_nesterov = false);

 private:
  std::vector<Tensor> step(const std::vector<Tensor>& gradients) override;

  float momentum_;
  bool use_nesterov_;
  States accumulators_;
};

// What the Adam family shares: first and second moments of the gradients.
class MomentOptimizer : public Optimizer {
 protected:
  MomentOptimizer(ParameterGroups parameters, const LearningRate& learning_rate, float beta1,
                  float beta2, float epsilon, float weight_decay, Decay decay);

  // Assigns and returns {beta1^t, beta2^t}, t the number of this step. They live on the device, so
  // that a sunk step counts.
  std::vector<Tensor> next_powers();
  void add_powers();
  std::vector<Tensor> betas() const;  // {beta1, beta2, epsilon}
  std::vector<States> moments() const { return {first_, second_}; }

 private:
  float beta1_, beta2_, epsilon_;
  States first_, second_;
  Parameter beta1_power_, beta2_power_;
};

// Adam (Kingma and Ba 2015), as MindSpore's nn.Adam: grad + weight_decay param in place of grad,
// the correction of the bias in the learning rate, epsilon beside the uncorrected sqrt(v).
class Adam : public MomentOptimizer {
 public:
  explicit Adam(ParameterGroups parameters, const LearningRate& learning_rate = 1e-3,
                float beta1 = 0.9f, float beta2 = 0.999f, float epsilon = 1e-8f,
                float weight_decay = 0.0f, bool use_nesterov = false);

 private:
  std::vector<Tensor> step(const std::vector<Tensor>& gradients) override;

  bool use_nesterov_;
};

// MindSpore's nn.AdamWeightDecay: the decay applies to the parameter itself, and nothing corrects
// the bias of the moments.
class AdamWeightDecay : public MomentOptimizer {
 public:
  explicit AdamWeightDecay(ParameterGroups parameters, const LearningRate& learning_rate = 1e-3,
                           float beta1 = 0.9f, float beta2 = 0.999f, float epsilon = 1e-6f,
                           float weight_decay = 0.0f);

 private:
  std::vector<Tensor> step(const std::vector<Tensor>& gradients) override;
};

// AdamW (Loshchilov and Hutter 2019): the same decay, with the bias corrected.
class AdamW : public MomentOptimizer {
 public:
  explicit AdamW(ParameterGroups parameters, const LearningRate& learning_rate = 1e-3,
                 float beta1 = 0.9f, float beta2 = 0.999f, float epsilon = 1e-8f,
                 float weight_decay = 0.01f);

 private:
  std::vector<Tensor> step(const std::vector<Tensor>& gradients) override;
};

}  // namespace ballast::nn
