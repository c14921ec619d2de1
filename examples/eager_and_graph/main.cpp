// The two modes: op by op for debugging, as one graph for speed, and both together: a train step
// that is compiled inside a program that is not.
#include "examples/support/compare_modes.h"
#include "examples/support/random.h"
#include "frontend/ballast_frontend.h"

#include <fmt/core.h>

using namespace ballast;

namespace {

// Runs at once, so any value can be printed.
Tensor custom_operation(const Tensor& x, const Tensor& y) {
  Tensor z = ops::add(x, y);
  fmt::print("Debug Info - Intermediate value z: {}\n", z.to_string());
  Tensor res = ops::mul(z, 2.0);
  return res;
}

// The same as a cell, which graph mode compiles: add and mul become one kernel. While it is traced
// there are no values; an op prints them when they come.
struct CustomOperationFast : nn::Cell {
  bool is_debugged;
  explicit CustomOperationFast(bool debug = false) : is_debugged(debug) {}
  Tensor construct(const Tensor& x, const Tensor& y) override {
    Tensor z = ops::add(x, y);
    if (is_debugged) ops::print("Debug Info - Intermediate value z:", z);
    Tensor res = ops::mul(z, 2.0);
    return res;
  }
};

struct SimpleNet : nn::Cell {
  nn::Dense fc{1024, 1024};
  nn::ReLU relu;
  SimpleNet() { add("fc", fc); }
  Tensor construct(const Tensor& x) override { return relu(fc(x)); }
};

auto make_train_step() {
  set_seed(0);
  SimpleNet net;
  nn::MSELoss loss_fn;
  nn::Momentum optimizer(net.trainable_params(), /*learning_rate=*/0.1, /*momentum=*/0.9);

  return [=](const Tensor& data, const Tensor& label) mutable {
    auto forward_fn = [&](const Tensor& x, const Tensor& y) {
      Tensor logits = net(x);
      Tensor loss = loss_fn(logits, y);
      return std::pair(loss, logits);
    };
    auto grad_fn = value_and_grad(forward_fn, std::nullopt, optimizer.parameters(), true);
    auto [value, grads] = grad_fn(data, label);
    optimizer(grads);  // assigns the parameters; that is kept without a depend
    return value.first;
  };
}

template <class Operation>
void show(examples::Example& example, const char* name, Operation operation) {
  Tensor x = Tensor::ones({2, 2}), y = Tensor::ones({2, 2});
  const uint64_t before = counters().kernel_launches;
  Tensor output = operation(x, y);
  const uint64_t launched = counters().kernel_launches - before;
  fmt::print("{} Output:\n{}\n{} kernel{} launched\n\n", name, output.to_string(), launched,
             launched == 1 ? "" : "s");
  example.record(name, output);
}

void run(examples::Example& example) {
  set_context({Mode::kPyNative});
  show(example, "Final", custom_operation);
  set_context({Mode::kGraph});
  show(example, "Graph Mode", CustomOperationFast());
  show(example, "Debugged Graph Mode", CustomOperationFast(true));

  set_context({Mode::kPyNative});
  auto train_step = jit(make_train_step());
  Tensor input_data = examples::randn({32, 1024}), label_data = examples::randn({32, 1024});
  fmt::print("Start warmup (Graph Compilation)...\n");
  train_step(input_data, label_data).sync();
  fmt::print("Warmup done.\n");

  const int64_t steps = example.steps();
  const double seconds = examples::seconds_of([&] {
    for (int64_t i = 0; i < steps; ++i) train_step(input_data, label_data);
  });
  fmt::print("{} steps finished. Average time per step: {:.2f} ms\n", steps,
             1000 * seconds / static_cast<double>(steps));

  examples::compare_modes(example, make_train_step, repeat(input_data), repeat(label_data));
}

}  // namespace

int main(int argc, char** argv) {
  return examples::run_example(argc, argv, "Eager against graph, and both together", run);
}
