// Optimizers: called with one gradient per parameter, in the order of parameters(), they assign the
// parameters and return the new values (for depend). The learning rate is a scalar on the device,
// so changing it compiles nothing anew.
#pragma once

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
  virtual Tensor step(size_t index, const Tensor& gradient) = 0;  // the parameter's new value
  // A state of each parameter's shape, zero at first.
  std::vector<Parameter> add_states(const std::string& prefix);

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
  Tensor step(size_t index, const Tensor& gradient) override;
};

// accum' = momentum accum + grad; param - lr accum' (or lr (grad + momentum accum') with Nesterov)
class Momentum : public Optimizer {
 public:
  Momentum(std::vector<Parameter> parameters, float learning_rate, float momentum,
           float weight_decay = 0.0f, bool use_nesterov = false);

 private:
  Tensor step(size_t index, const Tensor& gradient) override;

  float momentum_;
  bool use_nesterov_;
  std::vector<Parameter> accumulators_;
};

}  // namespace ballast::nn
