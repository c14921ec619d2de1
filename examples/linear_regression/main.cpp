// A custom training loop: a linear network, value_and_grad over its parameters, and one train step
// that runs op by op, compiled, or sunk.
#include "frontend/ballast_frontend.h"

#include <fmt/core.h>

#include <chrono>
#include <random>

using namespace ballast;

namespace {

struct SimpleNet : nn::Cell {
  nn::Dense fc{10, 1};
  SimpleNet() { add("fc", fc); }
  Tensor construct(const Tensor& x) override { return fc(x); }
};

auto make_train_step() {
  set_seed(0);
  SimpleNet net;
  nn::MSELoss loss_fn;
  nn::Momentum optimizer(net.trainable_params(), 0.01f, 0.9f);

  auto forward_fn = [net, loss_fn](const Tensor& data, const Tensor& label) mutable {
    Tensor logits = net(data);
    return std::pair(loss_fn(logits, label), logits);
  };
  auto grad_fn = value_and_grad(forward_fn, std::nullopt, optimizer.parameters(), true);

  return [grad_fn, optimizer](const Tensor& data, const Tensor& label) mutable {
    auto [value, grads] = grad_fn(data, label);
    auto [loss, logits] = value;
    return depend(loss, optimizer(grads));
  };
}

constexpr int kSteps = 2000, kBatch = 32, kSlots = 100;

// y = x w + 0.5 + noise, as [slots, batch, ...] tensors on the device.
std::pair<Tensor, Tensor> make_batches() {
  std::mt19937 generator(0);
  std::normal_distribution<float> normal;
  std::vector<float> w(10), x, y;
  for (float& value : w) value = normal(generator);
  for (int row = 0; row < kSlots * kBatch; ++row) {
    float sum = 0.5f + 0.01f * normal(generator);
    for (float weight : w) {
      x.push_back(normal(generator));
      sum += weight * x.back();
    }
    y.push_back(sum);
  }
  return {Tensor::from_host(x, {kSlots, kBatch, 10}), Tensor::from_host(y, {kSlots, kBatch, 1})};
}

// `run` does n steps and returns the last loss.
template <class Run>
void report(const char* mode, Run run) {
  run(1);  // compiles
  auto start = std::chrono::steady_clock::now();
  float loss = run(kSteps);
  std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - start;
  fmt::print("{:<6} {:>12.3f} {:>12.6f}\n", mode, time.count() / kSteps, loss);
}

}  // namespace

int main() try {
  auto [x, y] = make_batches();
  std::vector<std::pair<Tensor, Tensor>> batches;
  for (const data::Batch& b : data::ArrayDataset({x, y}).batch(1)) {
    batches.emplace_back(ops::reshape(b[0], {kBatch, 10}), ops::reshape(b[1], {kBatch, 1}));
  }
  auto one_by_one = [&](auto& step, int steps) {
    Tensor loss;
    for (int i = 0; i < steps; ++i)
      loss = step(batches[i % kSlots].first, batches[i % kSlots].second);
    return loss.item<float>();
  };

  fmt::print("{} steps on {}\nmode    us per step    last loss\n", kSteps, device_info().name);
  auto train_step = make_train_step();
  report("eager", [&](int n) { return one_by_one(train_step, n); });

  auto compiled = jit(make_train_step());
  report("jit", [&](int n) { return one_by_one(compiled, n); });

  auto loop = sink(jit(make_train_step()));
  report("sink", [&](int n) {
    Tensor losses;
    for (int i = 0; i < n; i += kSlots) losses = loop(n < kSlots ? n : kSlots, each(x), each(y));
    return losses.to_host<float>().back();
  });
} catch (const std::exception& error) {
  fmt::print(stderr, "linear_regression: {}\n", error.what());
  return 1;
}
