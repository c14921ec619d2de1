// A custom training loop: value_and_grad over a network's parameters, an optimizer, and one train
// step that is compiled; then the same step op by op, compiled, and sunk.
#include "examples/support/compare_modes.h"
#include "examples/support/random.h"
#include "frontend/ballast_frontend.h"

#include <fmt/core.h>

using namespace ballast;

namespace {

// A simple linear network.
struct SimpleNet : nn::Cell {
  nn::Dense fc{10, 1};
  SimpleNet() { add("fc", fc); }
  Tensor construct(const Tensor& x) override { return fc(x); }
};

auto make_train_step() {
  set_seed(0);
  SimpleNet net;
  nn::MSELoss loss_fn;
  nn::Momentum optimizer(net.trainable_params(), /*learning_rate=*/0.01, /*momentum=*/0.9);

  auto forward_fn = [=](const Tensor& data, const Tensor& label) mutable {
    Tensor logits = net(data);
    Tensor loss = loss_fn(logits, label);
    return std::pair(loss, logits);
  };
  auto grad_fn = value_and_grad(forward_fn, std::nullopt, optimizer.parameters(), /*has_aux=*/true);

  return [=](const Tensor& data, const Tensor& label) mutable {
    auto [value, grads] = grad_fn(data, label);
    auto [loss, logits] = value;
    return ops::depend(loss, optimizer(grads));
  };
}

std::pair<Tensor, Tensor> get_batch_data() {
  Tensor x = examples::randn({32, 10});
  Tensor y = examples::randn({32, 1});
  return {x, y};
}

void run(examples::Example& example) {
  set_context({Mode::kPyNative});  // ops run at once; the train step is compiled
  auto train_step = jit(make_train_step());

  const int epochs = 5;
  fmt::print("Start training on {}...\n", device_info().name);
  std::vector<float> losses;
  for (int epoch = 0; epoch < epochs; ++epoch) {
    auto [x, y] = get_batch_data();
    Tensor loss = train_step(x, y);
    losses.push_back(loss.item<float>());
    fmt::print("Epoch: {}, Loss: {}\n", epoch + 1, losses.back());
  }
  example.record("epochs", losses);

  Tensor xs = examples::randn({example.steps(), 32, 10});
  Tensor ys = examples::randn({example.steps(), 32, 1});
  examples::compare_modes(example, make_train_step, each(xs), each(ys));
}

}  // namespace

int main(int argc, char** argv) {
  return examples::run_example(argc, argv, "A custom training loop, compiled", run);
}
