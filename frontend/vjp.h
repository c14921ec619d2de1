// Reverse-mode differentiation: a transform from Program to Program, and grad / value_and_grad for
// functions. They work eagerly (trace, transform, evaluate) and inside jit or another grad, where
// the transformed program is inlined into the enclosing trace.
#pragma once

#include "frontend/trace.h"
#include "frontend/tree.h"

#include <optional>
#include <utility>
#include <vector>

namespace ballast {

// The program extended by the gradients of its output 0 (an f32 scalar): its outputs are those of
// `program`, then one gradient per input named in `inputs`, then one per weight.
[[nodiscard]] Program vjp(const Program& program, const std::vector<size_t>& inputs,
                          const std::vector<Parameter>& weights);

// The gradients of a closed program's inputs, made of ops that run now or join the open trace: runs
// it on `inputs`, then backwards from the cotangents of its outputs (undefined: zero). Undefined
// where not wanted, or where no cotangent arrives.
std::vector<Tensor> pullback(const Program& program, const std::vector<Tensor>& inputs,
                             const std::vector<Tensor>& cotangents,
                             const std::vector<bool>& wanted);

// Which outputs are floats that depend on a wanted input.
std::vector<bool> active_outputs(const Program& program, const std::vector<bool>& wanted);

namespace internal {

struct GradRequest {
  std::vector<int> positions;  // of arguments; each must be one tensor
  std::vector<Parameter> weights;
  bool has_aux = false;
};

// `leaf_counts`: leaves per argument. Returns value leaves, then gradients.
std::vector<Tensor> run_grad(const FlatFunction& fn, const std::vector<Tensor>& leaves,
                             const std::vector<size_t>& leaf_counts, const GradRequest& request);

enum class GradOf { kNone, kOne, kMany };

template <class F, GradOf kInputs, bool kWeights, bool kValue>
class GradFunction {
 public:
  GradFunction(F fn, GradRequest request) : fn_(std::move(fn)), request_(std::move(request)) {}

  template <class... Args>
  auto operator()(const Args&... args) {
    auto arguments = std::make_tuple(as_argument(args)...);
    using Value = std::decay_t<decltype(std::apply(fn_, arguments))>;
    std::optional<Value> prototype;
    FlatFunction flat = [&](const std::vector<Tensor>& leaves) {
      prototype.emplace(std::apply(fn_, with_leaves(arguments, leaves)));
      return leaves_of(*prototype);
    };
    std::vector<Tensor> results =
        run_grad(flat, leaves_of(arguments), {leaves_of(as_argument(args)).size()...}, request_);
    auto next = results.cbegin();
    Value value = with_leaves(*std::move(prototype), next);
    std::vector<Tensor> gradients(next, results.cend());
    if constexpr (kValue) {
      return std::pair(std::move(value), shape_gradients(std::move(gradients)));
    } else {
      return shape_gradients(std::move(gradients));
    }
  }

 private:
  auto shape_gradients(std::vector<Tensor> all) const {
    auto middle = all.begin() + static_cast<std::ptrdiff_t>(request_.positions.size());
    if constexpr (kInputs == GradOf::kNone || (kInputs == GradOf::kMany && !kWeights)) {
      return all;
    } else if constexpr (!kWeights) {
      return all.front();
    } else if constexpr (kInputs == GradOf::kOne) {
      return std::pair(all.front(), std::vector<Tensor>(middle, all.end()));
    } else {
      return std::pair(std::vector<Tensor>(all.begin(), middle),
                       std::vector<Tensor>(middle, all.end()));
    }
  }

  F fn_;
  GradRequest request_;
};

}  // namespace internal

// Functions that return {value, gradients}. `fn` returns the loss (an f32 scalar), or, with
// has_aux, a tuple that starts with the loss. What the gradients are follows from what is asked
// for:
//   a position            one tensor
//   several positions     a vector of tensors
//   weights               a vector of tensors, one per parameter
//   positions and weights a pair of both
template <class F>
auto value_and_grad(F fn, int position = 0, bool has_aux = false) {
  return internal::GradFunction<F, internal::GradOf::kOne, false, true>(std::move(fn),
                                                                        {{position}, {}, has_aux});
}
template <class F>
auto value_and_grad(F fn, std::vector<int> positions, bool has_aux = false) {
  return internal::GradFunction<F, internal::GradOf::kMany, false, true>(
      std::move(fn), {std::move(positions), {}, has_aux});
}
template <class F>
auto value_and_grad(F fn, std::nullopt_t, std::vector<Parameter> weights, bool has_aux = false) {
  return internal::GradFunction<F, internal::GradOf::kNone, true, true>(
      std::move(fn), {{}, std::move(weights), has_aux});
}
template <class F>
auto value_and_grad(F fn, int position, std::vector<Parameter> weights, bool has_aux = false) {
  return internal::GradFunction<F, internal::GradOf::kOne, true, true>(
      std::move(fn), {{position}, std::move(weights), has_aux});
}
template <class F>
auto value_and_grad(F fn, std::vector<int> positions, std::vector<Parameter> weights,
                    bool has_aux = false) {
  return internal::GradFunction<F, internal::GradOf::kMany, true, true>(
      std::move(fn), {std::move(positions), std::move(weights), has_aux});
}

// Functions that return the gradients alone.
template <class F>
auto grad(F fn, int position = 0) {
  return internal::GradFunction<F, internal::GradOf::kOne, false, false>(std::move(fn),
                                                                         {{position}, {}, false});
}
template <class F>
auto grad(F fn, std::vector<int> positions) {
  return internal::GradFunction<F, internal::GradOf::kMany, false, false>(
      std::move(fn), {std::move(positions), {}, false});
}
template <class F>
auto grad(F fn, std::nullopt_t, std::vector<Parameter> weights) {
  return internal::GradFunction<F, internal::GradOf::kNone, true, false>(
      std::move(fn), {{}, std::move(weights), false});
}

}  // namespace ballast
