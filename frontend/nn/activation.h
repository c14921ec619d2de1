// Activations as cells: each applies one op.
#pragma once

#include "frontend/nn/cell.h"
#include "frontend/ops/pointwise.h"
#include "frontend/ops/softmax.h"

namespace ballast::nn {

template <Tensor (*kOp)(const Operand&)>
class Activation : public Cell {
 public:
  using Cell::construct;
  Tensor construct(const Tensor& x) override { return kOp(x); }
};

using ReLU = Activation<ops::relu>;
using ReLU6 = Activation<ops::relu6>;
using Tanh = Activation<ops::tanh>;
using Sigmoid = Activation<ops::sigmoid>;
using SiLU = Activation<ops::silu>;
using Mish = Activation<ops::mish>;
using Softplus = Activation<ops::softplus>;
using HSigmoid = Activation<ops::hard_sigmoid>;
using HSwish = Activation<ops::hard_swish>;

// approximate: by a tanh.
class GELU : public Cell {
 public:
  explicit GELU(bool approximate = true) : approximate_(approximate) {}
  using Cell::construct;
  Tensor construct(const Tensor& x) override {
    return ops::gelu(x, approximate_ ? ops::Gelu::kTanh : ops::Gelu::kExact);
  }

 private:
  bool approximate_;
};

class LeakyReLU : public Cell {
 public:
  explicit LeakyReLU(double alpha = 0.2) : alpha_(alpha) {}
  using Cell::construct;
  Tensor construct(const Tensor& x) override { return ops::leaky_relu(x, alpha_); }

 private:
  double alpha_;
};

class ELU : public Cell {
 public:
  explicit ELU(double alpha = 1.0) : alpha_(alpha) {}
  using Cell::construct;
  Tensor construct(const Tensor& x) override { return ops::elu(x, alpha_); }

 private:
  double alpha_;
};

class Softmax : public Cell {
 public:
  explicit Softmax(int64_t axis = -1) : axis_(axis) {}
  using Cell::construct;
  Tensor construct(const Tensor& x) override { return ops::softmax(x, axis_); }

 private:
  int64_t axis_;
};

class LogSoftmax : public Cell {
 public:
  explicit LogSoftmax(int64_t axis = -1) : axis_(axis) {}
  using Cell::construct;
  Tensor construct(const Tensor& x) override { return ops::log_softmax(x, axis_); }

 private:
  int64_t axis_;
};

}  // namespace ballast::nn
