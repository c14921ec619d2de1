// Automatic differentiation of programs: of branches, loops, closures and functions of functions,
// to any order; one network in both modes; and a descent along a derivative.
#include "examples/support/compare_modes.h"
#include "examples/support/random.h"
#include "frontend/ballast_frontend.h"

#include <fmt/format.h>

using namespace ballast;

namespace {

using Function = std::function<Tensor(const Tensor&)>;

// x^3 above 1, else sin x.
Tensor branch(const Tensor& x) {
  auto cube = [&] { return x * x * x; };
  return cond(ops::greater(x, 1), cube, [&] { return ops::sin(x); });
}

// x^4
Tensor power(const Tensor& x) {
  auto times_x = [&](const Tensor&, const Tensor& y) { return x * y; };
  return fori_loop(0, 3, times_x, x);
}

// Newton's steps to the square root.
Tensor root(const Tensor& x) {
  auto is_far = [&](const Tensor& y) { return ops::greater(ops::abs(y * y - x), 1e-4); };
  auto nearer = [&](const Tensor& y) { return (y + x / y) / 2; };
  return while_loop(is_far, nearer, x);
}

// A function of a function.
Function twice(const Function& f) {
  return [=](const Tensor& x) { return f(f(x)); };
}

// A closure over a list.
Function parabola(const std::vector<Tensor>& c) {
  return [=](const Tensor& x) { return (c[0] * x + c[1]) * x + c[2]; };
}

// f and its first three derivatives, op by op and compiled.
void show(examples::Example& example, const std::string& name, const Function& f) {
  auto derivatives = [f](const Tensor& x) {
    return ops::stack({f(x), grad(f)(x), grad(grad(f))(x), grad(grad(grad(f)))(x)});
  };
  const Tensor x = Tensor::scalar(1.5), values = derivatives(x);
  fmt::print("{:<14}{:>11.6f}\n", name, fmt::join(values.to_host<float>(), " "));
  example.record(name, values);
  example.record(name + ", jitted", jit(derivatives)(x));
}

// Fits a parabola to the sine; a large error counts by its size, a small one squared.
auto make_descent() {
  std::vector<Parameter> c;
  for (const char* name : {"c0", "c1", "c2"}) c.emplace_back(Tensor::scalar(1), name);
  auto loss_fn = [=](const Tensor& x) {
    Tensor error = parabola({c.begin(), c.end()})(x) - ops::sin(x);
    Tensor size = ops::mean(ops::abs(error));
    auto square = [&] { return ops::mean(error * error); };
    return cond(ops::less(size, 0.5), square, [&] { return size; });
  };
  return [=, grad_fn = value_and_grad(loss_fn, std::nullopt, c)](const Tensor& x) mutable {
    auto [loss, gradients] = grad_fn(x);
    for (size_t i = 0; i < c.size(); ++i) c[i].assign(c[i] - 0.3 * gradients[i]);
    return loss;
  };
}

void run(examples::Example& example) {
  const Function f = [](const Tensor& x) { return x * ops::sin(x); };
  auto df = jit(grad(f));
  df(Tensor::scalar(1.5));
  fmt::print("The derivative of x sin x is a program:\n{}\n", to_string(df.program()));
  fmt::print("{:<14}{:>11} {:>11} {:>11} {:>11}\n", "at 1.5", "f", "f'", "f''", "f'''");
  show(example, "x sin x", f);
  show(example, "if", branch);
  show(example, "for", power);
  show(example, "while", root);
  show(example, "higher order", twice(twice([](const Tensor& x) { return ops::sin(x); })));
  show(example, "closure", [](const Tensor& x) { return parabola({x, x, x})(ops::sin(x)); });
  set_seed(0);
  nn::SequentialCell net{nn::Conv2d(1, 4, 3), nn::ReLU()};
  Tensor x = examples::rand({1, 1, 4, 1024});
  example.record("PyNative", ops::mean(net(x), {0, 2, 3}));  // op by op, by default
  set_context({Mode::kGraph});
  example.record("Graph", ops::mean(net(x), {0, 2, 3}));
  set_context({Mode::kPyNative});

  examples::compare_modes(example, make_descent, each(examples::rand({example.steps(), 32})));
}

}  // namespace

int main(int argc, char** argv) {
  return examples::run_example(argc, argv, "Automatic differentiation of programs", run);
}
