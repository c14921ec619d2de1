// The ways to a static graph: the global mode, and jit of a function and of a method. All give one
// network's output. Then what a static graph does not allow, and a training step.
#include "examples/support/compare_modes.h"
#include "examples/support/random.h"
#include "frontend/ballast_frontend.h"

#include <fmt/core.h>

using namespace ballast;

namespace {

struct Network : nn::Cell {
  nn::Flatten flatten;
  nn::SequentialCell dense_relu_sequential{nn::Dense(28 * 28, 512), nn::ReLU(), nn::Dense(512, 512),
                                           nn::ReLU(), nn::Dense(512, 10)};
  Network() { add("dense_relu_sequential", dense_relu_sequential); }
  Tensor construct(const Tensor& x) override {
    Tensor logits = dense_relu_sequential(flatten(x));
    return logits;
  }
};

// Jitted, it makes its network once, while it is traced.
Tensor run(const Tensor& x) {
  Network model;
  return model(x);
}

template <class F>
void show(examples::Example& example, const char* way, F f) {
  set_seed(0);  // the same network every time
  Tensor input = Tensor::ones({64, 1, 28, 28});
  Tensor output = f(input);
  ops::print(way, ops::slice(output, {0, 0}, {2, 10}));  // all rows are alike
  example.record(way, ops::slice(output, {63, 0}, {1, 10}));
}

void show_ways(examples::Example& example) {
  set_context({Mode::kPyNative});
  show(example, "PyNative mode", run);
  show(example, "jit of a function", jit([](const Tensor& x) { return run(x); }));
  auto run_with_jit = jit(run);
  show(example, "jit(run)", run_with_jit);
  show(example, "jit of construct", [](const Tensor& x) {
    Network model;
    return jit([&](const Tensor& input) { return model.construct(input); })(x);
  });
  set_context({Mode::kGraph});
  show(example, "Graph mode", run);
  set_context({Mode::kPyNative});
}

template <class F>
void show_error(const char* mistake, F f) {
  try {
    f();
  } catch (const Error& error) {
    fmt::print("\n{}:\n  {}\n", mistake, error.what());
  }
}

// Only functions can be jitted, not classes: jit(Network) is no C++.
void show_errors() {
  Tensor x = Tensor::ones({64, 1, 28, 28}), kept;
  auto branch = [](const Tensor& a) { return ops::sum(a).item<float>() > 0 ? a : -a; };
  show_error("An if on a tensor", [&] { jit(branch)(x); });
  auto side_effect = [&](const Tensor& a) { return kept = a * a; };
  show_error("A tensor kept from a trace", [&] { jit(side_effect)(x), kept + 1; });
  show_error("Another shape", [&] { jit(run)(Tensor::ones({64, 1, 28, 27})); });
}

auto make_train_step() {
  set_seed(0);
  Network model;
  nn::SGD optimizer(model.trainable_params(), /*learning_rate=*/0.01);
  return nn::TrainOneStepCell(nn::WithLossCell(model, nn::CrossEntropyLoss()), optimizer);
}

void run_program(examples::Example& example) {
  show_ways(example);
  show_errors();
  set_seed(1);
  Tensor images = examples::rand({10, 64, 1, 28, 28});
  Tensor labels = examples::randint(0, 10, {10, 64});
  examples::compare_modes(example, make_train_step, each(images), each(labels));
}

}  // namespace

int main(int argc, char** argv) {
  return examples::run_example(argc, argv, "The ways to a static graph", run_program);
}
