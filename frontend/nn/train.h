// The cells of a training step: WithLossCell joins a network and a loss, TrainOneStepCell adds
// gradients and an optimizer, so that one call trains:
//   nn::TrainOneStepCell step(nn::WithLossCell(net, nn::CrossEntropyLoss()), optimizer);
//   step.set_train();
//   Tensor loss = step(images, labels);      // also in jit, and sunk
// They hold the network's parameters under their own names, and the optimizer's states, so that
// StateDict(step) is everything but the generators.
#pragma once

#include "frontend/nn/cell.h"
#include "frontend/nn/optimizer.h"

#include <functional>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace ballast::nn {

namespace internal {

template <class T>
using EnableIfCell = std::enable_if_t<std::is_base_of_v<Cell, T>>;
template <class T>
using EnableIfOptimizer = std::enable_if_t<std::is_base_of_v<Optimizer, T>>;

}  // namespace internal

class WithLossCell : public Cell {
 public:
  WithLossCell(std::shared_ptr<Cell> backbone, std::shared_ptr<Cell> loss_fn);
  template <class Network, class Loss, class = internal::EnableIfCell<Network>,
            class = internal::EnableIfCell<Loss>>
  WithLossCell(Network backbone, Loss loss_fn)
      : WithLossCell(std::make_shared<Network>(std::move(backbone)),
                     std::make_shared<Loss>(std::move(loss_fn))) {}

  using Cell::construct;
  Tensor construct(const Tensor& data, const Tensor& label) override;

 private:
  std::shared_ptr<Cell> backbone_, loss_fn_;
};

// What may become of gradients before the optimizer sees them: nn::ClipByGlobalNorm(1.0), ...
using GradientTransform = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;
GradientTransform ClipByGlobalNorm(double clip_norm = 1.0);
GradientTransform ClipByValue(double low, double high);

// One step: the loss before it is returned. sens scales the gradients.
class TrainOneStepCell : public Cell {
 public:
  TrainOneStepCell(std::shared_ptr<Cell> network, std::shared_ptr<Optimizer> optimizer,
                   float sens = 1.0f, GradientTransform transform = {});
  template <class Network, class Optim, class = internal::EnableIfCell<Network>,
            class = internal::EnableIfOptimizer<Optim>>
  TrainOneStepCell(Network network, Optim optimizer, float sens = 1.0f,
                   GradientTransform transform = {})
      : TrainOneStepCell(std::make_shared<Network>(std::move(network)),
                         std::make_shared<Optim>(std::move(optimizer)), sens,
                         std::move(transform)) {}

  Tensor construct(const Tensor& a) override { return train({a}); }
  Tensor construct(const Tensor& a, const Tensor& b) override { return train({a, b}); }
  Tensor construct(const Tensor& a, const Tensor& b, const Tensor& c) override {
    return train({a, b, c});
  }
  Tensor construct(const Tensor& a, const Tensor& b, const Tensor& c, const Tensor& d) override {
    return train({a, b, c, d});
  }

 protected:
  // {loss, gradients}: the gradients are of scale times the loss.
  std::pair<Tensor, std::vector<Tensor>> differentiate(const std::vector<Tensor>& inputs,
                                                       const Tensor& scale);
  virtual Tensor train(const std::vector<Tensor>& inputs);
  // After `transform`: what follows from them.
  std::vector<Tensor> update(const std::vector<Tensor>& gradients);
  const Optimizer& optimizer() const { return *optimizer_; }

 private:
  std::shared_ptr<Cell> network_;
  std::shared_ptr<Optimizer> optimizer_;
  float sens_;
  GradientTransform transform_;
};

}  // namespace ballast::nn
