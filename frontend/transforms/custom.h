// Functions with a say in their own differentiation: custom_vjp, whose gradients the user gives,
// and checkpoint, whose gradients run it again instead of keeping what it computed.
//
// Either is recorded as what the function computes, followed by an equation that hands the results
// on unchanged and whose body computes gradients. Outside of a trace, where nobody differentiates,
// the function is just called.
#pragma once

#include "frontend/transforms/flattened.h"

#include <utility>
#include <vector>

namespace ballast {

namespace internal {

// `backward` takes the residuals, then a cotangent per value (an undefined tensor for one that is
// not a float), and returns a gradient per argument, undefined for zero.
std::vector<Tensor> apply_custom_vjp(const std::vector<Tensor>& values,
                                     const std::vector<Tensor>& arguments,
                                     const std::vector<Tensor>& residuals,
                                     const FlatFunction& backward);

std::vector<Tensor> apply_checkpoint(const FlatFunction& fn, const std::vector<Tensor>& arguments);

template <class F, class Forward, class Backward>
class CustomVjp {
 public:
  CustomVjp(F fn, Forward forward, Backward backward)
      : fn_(std::move(fn)), forward_(std::move(forward)), backward_(std::move(backward)) {}

  template <class... Args>
  auto operator()(const Args&... args) {
    auto arguments = std::make_tuple(as_argument(args)...);
    using Value = std::decay_t<decltype(std::apply(fn_, arguments))>;
    if (!Trace::current()) return Value(std::apply(fn_, arguments));
    auto [value, residuals] = std::apply(forward_, arguments);
    FlatFunction backward = [&, &value = value,
                             &residuals = residuals](const std::vector<Tensor>& leaves) {
      auto next = leaves.cbegin();
      auto saved = with_leaves(residuals, next);
      return leaves_of(backward_(saved, with_leaves(Value(value), next)));
    };
    return with_leaves(Value(value), apply_custom_vjp(leaves_of(value), leaves_of(arguments),
                                                      leaves_of(residuals), backward));
  }

 private:
  F fn_;
  Forward forward_;
  Backward backward_;
};

template <class F>
class Checkpoint {
 public:
  explicit Checkpoint(F fn) : fn_(std::move(fn)) {}

  template <class... Args>
  auto operator()(const Args&... args) {
    auto arguments = std::make_tuple(as_argument(args)...);
    using Value = std::decay_t<decltype(std::apply(fn_, arguments))>;
    if (!Trace::current()) return Value(std::apply(fn_, arguments));
    Flattened flat(fn_, arguments);
    const std::vector<Tensor> results = apply_checkpoint(flat.function(), leaves_of(arguments));
    return flat.value(results);
  }

 private:
  F fn_;
};

}  // namespace internal

// `fn` with gradients of the user's own: forward(args...) returns {value, residuals}, both trees,
// and backward(residuals, cotangents) the gradients: a tuple with a tree like each argument (for
// one argument that tree alone will do), in which an undefined tensor stands for zero. Nothing else
// that fn reads gets a gradient. backward must be linear in the cotangents; jvp follows from it.
//   auto clipped = custom_vjp([](Tensor x) { return x; },
//                             [](Tensor x) { return std::pair(x, x); },
//                             [](Tensor, Tensor dy) { return ops::clip(dy, -1, 1); });
template <class F, class Forward, class Backward>
auto custom_vjp(F fn, Forward forward, Backward backward) {
  return internal::CustomVjp<F, Forward, Backward>(std::move(fn), std::move(forward),
                                                   std::move(backward));
}

// `fn`, of which a backward pass keeps the arguments only: it computes the rest again when it needs
// it. Gradients flow to whatever fn reads, parameters too. (MindSpore's recompute.)
template <class F>
auto checkpoint(F fn) {
  return internal::Checkpoint<F>(std::move(fn));
}

}  // namespace ballast
