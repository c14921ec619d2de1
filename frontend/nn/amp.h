// Automatic mixed precision: matrix products, convolutions and attention in bf16 (or f16), all else
// in f32 where it matters; parameters stay f32. And loss scales, which keep small gradients of f16
// from vanishing. As mindspore.amp (2.10): auto_mixed_precision, StaticLossScaler,
// DynamicLossScaler; all of it works in jit and sunk.
#pragma once

#include "frontend/nn/cell.h"
#include "frontend/nn/train.h"
#include "frontend/transforms/flattened.h"

#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace ballast::amp {

// Runs the program like eval(), with the element types of its floats chosen anew:
//   low precision  matmul, conv2d, attention: their f32 operands are cast to `dtype`
//   either         ops that move elements, add, multiply, relu, gelu...: in `dtype` if all their
//                  operands have it, else in f32
//   as it was      everything else: norms, softmax, reductions, losses, optimizers
// So too in the bodies of control flow, which take and give the types they did.
// Results and effects have the types they had.
std::vector<Tensor> eval_mixed(const Program& program, const std::vector<Tensor>& inputs,
                               DType dtype);

// The function in mixed precision. It is traced at every call, so put it inside of a jit.
template <class F>
class MixedFunction {
 public:
  MixedFunction(F fn, DType dtype) : fn_(std::move(fn)), dtype_(dtype) {}

  template <class... Args>
  auto operator()(const Args&... args) {
    auto arguments = std::make_tuple(as_argument(args)...);
    internal::Flattened flat(fn_, arguments);
    const std::vector<Tensor> leaves = leaves_of(arguments);
    const Program program = trace(flat.function(), types_of(leaves));
    return flat.value(eval_mixed(program, leaves, dtype_));
  }

 private:
  F fn_;
  DType dtype_;
};

// A cell in mixed precision; shares the parameters.
class MixedCell : public nn::Cell {
 public:
  MixedCell(std::shared_ptr<nn::Cell> cell, DType dtype);
  Tensor construct(const Tensor& a) override { return run({a}); }
  Tensor construct(const Tensor& a, const Tensor& b) override { return run({a, b}); }
  Tensor construct(const Tensor& a, const Tensor& b, const Tensor& c) override {
    return run({a, b, c});
  }
  Tensor construct(const Tensor& a, const Tensor& b, const Tensor& c, const Tensor& d) override {
    return run({a, b, c, d});
  }

 private:
  Tensor run(const std::vector<Tensor>& inputs);

  std::shared_ptr<nn::Cell> cell_;
  DType dtype_;
};

// Of a function of tensors, or a cell.
template <class F>
auto auto_mixed_precision(F fn, DType dtype = DType::kBF16) {
  if constexpr (std::is_base_of_v<nn::Cell, F>) {
    return MixedCell(std::make_shared<F>(std::move(fn)), dtype);
  } else {
    return MixedFunction<F>(std::move(fn), dtype);
  }
}

// A factor of the loss, by which gradients are divided again.
class LossScaler {
 public:
  virtual ~LossScaler() = default;
  virtual Tensor scale_value() const = 0;  // f32[]
  Tensor scale(const Tensor& loss) const;
  std::vector<Tensor> unscale(const std::vector<Tensor>& gradients) const;
  // Chooses the next scale, given whether all gradients were finite (bool[]).
  virtual void adjust(const Tensor& is_finite) {}
  virtual std::vector<Parameter> states() const { return {}; }
};

class StaticLossScaler : public LossScaler {
 public:
  explicit StaticLossScaler(float scale_value,
                            Where where = Where::here());  // finite and more than 0
  Tensor scale_value() const override { return Tensor::scalar(scale_value_); }

 private:
  float scale_value_;
};

// Multiplied by scale_factor after scale_window finite steps in a row, divided by it (down to 1)
// after a step that was not.
class DynamicLossScaler : public LossScaler {
 public:
  explicit DynamicLossScaler(float scale_value, float scale_factor = 2, int32_t scale_window = 1000,
                             Where where = Where::here());
  Tensor scale_value() const override { return scale_value_; }
  void adjust(const Tensor& is_finite) override;
  std::vector<Parameter> states() const override { return {scale_value_, counter_}; }

 private:
  float scale_factor_;
  int32_t scale_window_;
  Parameter scale_value_, counter_;
};

// nn.TrainOneStepCell with a loss scale: a step whose gradients are not all finite leaves weights
// and optimizer as they were.
class TrainOneStepWithLossScaleCell : public nn::TrainOneStepCell {
 public:
  TrainOneStepWithLossScaleCell(std::shared_ptr<nn::Cell> network,
                                std::shared_ptr<nn::Optimizer> optimizer,
                                std::shared_ptr<LossScaler> scaler,
                                nn::GradientTransform transform = {});
  template <class Network, class Optim, class Scaler, class = nn::internal::EnableIfCell<Network>,
            class = nn::internal::EnableIfOptimizer<Optim>>
  TrainOneStepWithLossScaleCell(Network network, Optim optimizer, Scaler scaler,
                                nn::GradientTransform transform = {})
      : TrainOneStepWithLossScaleCell(std::make_shared<Network>(std::move(network)),
                                      std::make_shared<Optim>(std::move(optimizer)),
                                      std::make_shared<Scaler>(std::move(scaler)),
                                      std::move(transform)) {}

 private:
  Tensor train(const std::vector<Tensor>& inputs) override;

  std::shared_ptr<LossScaler> scaler_;
};

}  // namespace ballast::amp
