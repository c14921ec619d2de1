#include "frontend/nn/train.h"

#include "frontend/ops/ops.h"
#include "frontend/transforms/vjp.h"

namespace ballast::nn {

WithLossCell::WithLossCell(std::shared_ptr<Cell> backbone, std::shared_ptr<Cell> loss_fn)
    : backbone_(std::move(backbone)), loss_fn_(std::move(loss_fn)) {
  add(*backbone_);
  add(*loss_fn_);
}

Tensor WithLossCell::construct(const Tensor& data, const Tensor& label) {
  return (*loss_fn_)((*backbone_)(data), label);
}

GradientTransform ClipByGlobalNorm(double clip_norm) {
  return [=](const std::vector<Tensor>& gradients) {
    return ops::clip_by_global_norm(gradients, clip_norm);
  };
}

GradientTransform ClipByValue(double low, double high) {
  return [=](const std::vector<Tensor>& gradients) {
    std::vector<Tensor> clipped;
    for (const Tensor& gradient : gradients) {
      clipped.push_back(ops::clip_by_value(gradient, low, high));
    }
    return clipped;
  };
}

TrainOneStepCell::TrainOneStepCell(std::shared_ptr<Cell> network,
                                   std::shared_ptr<Optimizer> optimizer, float sens,
                                   GradientTransform transform)
    : network_(std::move(network)),
      optimizer_(std::move(optimizer)),
      sens_(sens),
      transform_(std::move(transform)) {
  add(*network_);
  for (const Parameter& state : optimizer_->states()) add(state.name(), state);
}

std::pair<Tensor, std::vector<Tensor>> TrainOneStepCell::differentiate(
    const std::vector<Tensor>& inputs, const Tensor& scale) {
  auto forward = [&](const std::vector<Tensor>& arguments) {
    const Tensor loss = network_->call({arguments.begin(), arguments.end()});
    return std::pair(scale.defined() ? loss * scale : loss, loss);
  };
  auto [losses, gradients] = value_and_grad(forward, std::nullopt, optimizer_->parameters(),
                                            /*has_aux=*/true)(inputs);
  return {losses.second, gradients};
}

std::vector<Tensor> TrainOneStepCell::update(const std::vector<Tensor>& gradients) {
  return (*optimizer_)(transform_ ? transform_(gradients) : gradients);
}

Tensor TrainOneStepCell::train(const std::vector<Tensor>& inputs) {
  auto [loss, gradients] = differentiate(inputs, sens_ == 1 ? Tensor() : Tensor::scalar(sens_));
  return depend(loss, update(gradients));
}

}  // namespace ballast::nn
