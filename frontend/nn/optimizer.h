// Optimizers: called with one gradient per parameter, in the order of parameters(), they assign the
// parameters and return the new values (for depend). A step is one op over all parameters, which
// runs in few launches (kernels/optimizer/merge_launches.h). The learning rate is a scalar on the
// device, so changing it compiles nothing anew.
#pragma once

#include "frontend/attrs.h"
#include "frontend/operand.h"

#include <vector>

namespace ballast::nn {

class Optimizer {
 public:
  Optimizer(std::vector<Parameter> parameters, float learning_rate, float weight_decay);
  virtual ~Optimizer() = default;

  std::vector<Tensor> operator()(const std::vector<Tensor>& gradients, Where where = Where::here());

  const std::vector<Parameter>& parameters() const { return parameters_; }
  // Everything it keeps between steps: the learning rate, accumulators.
  const std::vector<Parameter>& states() const { return states_; }
  const Parameter& learning_rate() const { return learning_rate_; }
  void set_learning_rate(float value) { learning_rate_.assign(Tensor::scalar(value)); }

 protected:
  using States = std::vector<Parameter>;  // one per parameter

  // Assigns the states and returns the parameters' new values.
  virtual std::vector<Tensor> step(const std::vector<Tensor>& gradients) = 0;
  // A state of each parameter's shape, zero at first. f32 unless it has the parameters' dtype.
  States add_states(const std::string& prefix, bool has_parameters_dtype = false);
  Parameter add_scalar(const std::string& name, float value);
  // The op on all parameters with these states; assigns the states, returns the parameters.
  std::vector<Tensor> apply(const char* op, const std::vector<States>& states,
                            const std::vector<Tensor>& gradients,
                            const std::vector<Tensor>& scalars, const Attrs& attrs = {});

 private:
  std::vector<Parameter> parameters_;
  std::vector<Parameter> states_;
  Parameter learning_rate_;
  float weight_decay_;
};

// param - lr (grad + weight_decay param)
class SGD : public Optimizer {
 public:
  explicit SGD(std::vector<Parameter> parameters, float learning_rate = 0.1f,
               float weight_decay = 0.0f);

 private:
  std::vector<Tensor> step(const std::vector<Tensor>& gradients) override;
};

// accum' = momentum accum + grad; param - lr accum' (or lr (grad + momentum accum') with Nesterov)
class Momentum : public Optimizer {
 public:
  Momentum(std::vector<Parameter> parameters, float learning_rate, float momentum,
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
  MomentOptimizer(std::vector<Parameter> parameters, float learning_rate, float beta1, float beta2,
                  float epsilon, float weight_decay);

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
  explicit Adam(std::vector<Parameter> parameters, float learning_rate = 1e-3f, float beta1 = 0.9f,
                float beta2 = 0.999f, float epsilon = 1e-8f, float weight_decay = 0.0f,
                bool use_nesterov = false);

 private:
  std::vector<Tensor> step(const std::vector<Tensor>& gradients) override;

  bool use_nesterov_;
};

// MindSpore's nn.AdamWeightDecay: the decay applies to the parameter itself, and nothing corrects
// the bias of the moments.
class AdamWeightDecay : public MomentOptimizer {
 public:
  explicit AdamWeightDecay(std::vector<Parameter> parameters, float learning_rate = 1e-3f,
                           float beta1 = 0.9f, float beta2 = 0.999f, float epsilon = 1e-6f,
                           float weight_decay = 0.0f);

 private:
  std::vector<Tensor> step(const std::vector<Tensor>& gradients) override;

  float decay_;
};

// AdamW (Loshchilov and Hutter 2019): the same decay, with the bias corrected.
class AdamW : public MomentOptimizer {
 public:
  explicit AdamW(std::vector<Parameter> parameters, float learning_rate = 1e-3f, float beta1 = 0.9f,
                 float beta2 = 0.999f, float epsilon = 1e-8f, float weight_decay = 0.01f);

 private:
  std::vector<Tensor> step(const std::vector<Tensor>& gradients) override;

  float decay_;
};

}  // namespace ballast::nn
