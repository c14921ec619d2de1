// Reverse-mode differentiation: transforms of Programs, and vjp / grad / value_and_grad for
// functions. They work eagerly (trace, transform, evaluate) and inside jit or another transform,
// where the transformed program is inlined into the enclosing trace.
#pragma once

#include "frontend/modes/jit.h"
#include "frontend/transforms/flattened.h"
#include "frontend/transforms/grad_cache.h"
#include "frontend/transforms/linearize.h"

#include <optional>
#include <utility>
#include <vector>

namespace ballast {

// The program extended by the gradients of its output 0 (an f32 scalar): its outputs are those of
// `program`, then one gradient per input named in `inputs`, then one per weight.
[[nodiscard]] Program reverse(const Program& program, const std::vector<size_t>& inputs,
                              const std::vector<Parameter>& weights);

// The gradients of a program's inputs, made of ops that run now or join the open trace: runs it on
// `inputs`, then backwards from the cotangents of its outputs (undefined: zero). Undefined where
// not wanted, or where no cotangent arrives. `outputs`, if given, get the program's outputs.
std::vector<Tensor> pullback(const Program& program, const std::vector<Tensor>& inputs,
                             const std::vector<Tensor>& cotangents, const std::vector<bool>& wanted,
                             std::vector<Tensor>* outputs = nullptr);

// Which outputs are floats that depend on a wanted input.
std::vector<bool> active_outputs(const Program& program, const std::vector<bool>& wanted);

namespace internal {

struct GradRequest {
  std::vector<int> positions;  // of arguments; each must be one tensor
  std::vector<Parameter> weights;
  bool has_aux = false;
  Where where;  // the user's line, for errors that name none
  std::shared_ptr<GradCache> cache = std::make_shared<GradCache>();
};

// `leaf_counts`: leaves per argument. Returns value leaves, then gradients.
std::vector<Tensor> run_grad(const FlatFunction& fn, const std::vector<Tensor>& leaves,
                             const std::vector<size_t>& leaf_counts, const GradRequest& request);

enum class GradOf { kNone, kOne, kMany };

template <class F, GradOf kInputs, bool kWeights, bool kValue>
class GradFunction {
 public:
  GradFunction(F fn, GradRequest request)
      : fn_(std::move(fn)),
        request_(std::move(request)),
        compiled_(std::make_shared<JitCache>(JitOptions{}, "gradient function")) {}

  template <class... Args>
  auto operator()(const Args&... args) {
    if (!compiles_calls()) return differentiate(args...);
    auto differentiated = [this](const auto&... traced) { return differentiate(traced...); };
    return call_compiled(*compiled_, differentiated, request_.where, args...);
  }

 private:
  template <class... Args>
  auto differentiate(const Args&... args) {
    auto arguments = std::make_tuple(as_argument(args)...);
    Flattened flat(fn_, arguments);
    std::vector<Tensor> results =
        run_grad(flat.function(), leaves_of(arguments), {leaf_count(args)...}, request_);
    auto next = results.cbegin();
    auto value = flat.value(next);
    std::vector<Tensor> gradients(next, results.cend());
    if constexpr (kValue) {
      return std::pair(std::move(value), shape_gradients(std::move(gradients)));
    } else {
      return shape_gradients(std::move(gradients));
    }
  }

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
  std::shared_ptr<JitCache> compiled_;  // for GRAPH_MODE
};

// Cotangents, a tree like the function's value, to a tuple of gradients, trees like the arguments.
template <class Value, class Arguments>
class Pullback {
 public:
  Pullback(std::shared_ptr<const Linearized> linearized, Arguments arguments)
      : linearized_(std::move(linearized)), arguments_(std::move(arguments)) {}

  Arguments operator()(const Value& cotangents, Where where = Where::here()) const {
    return at_line(
        where, [&] { return with_leaves(arguments_, linearized_->pull(leaves_of(cotangents))); });
  }

 private:
  std::shared_ptr<const Linearized> linearized_;
  Arguments arguments_;  // their form
};

}  // namespace internal

// {fn(args...), pullback}. pullback(cotangents) takes a tree like the value, in which an undefined
// tensor stands for zero, and returns a tuple with a tree like each argument: the gradients, which
// are undefined tensors where a leaf is not a float. It may be called many times; the forward pass
// has run once.
//   auto [y, pullback] = vjp(f, x, w);
//   auto [dx, dw] = pullback(dy);
template <class F, class... Args>
auto vjp(F fn, const Args&... args) {
  auto arguments = std::make_tuple(as_argument(args)...);
  using Arguments = decltype(arguments);
  internal::Flattened flat(fn, arguments);
  using Value = typename decltype(flat)::Value;
  const std::vector<Tensor> leaves = leaves_of(arguments);
  auto linearized =
      std::make_shared<const Linearized>(trace(flat.function(), types_of(leaves)), leaves);
  Value value = flat.value(linearized->outputs());
  return std::pair(std::move(value), internal::Pullback<Value, Arguments>(std::move(linearized),
                                                                          std::move(arguments)));
}

// Functions that return {value, gradients}. `fn` returns the loss (an f32 scalar), or, with
// has_aux, a tuple that starts with the loss. In GRAPH_MODE the whole computation is compiled. What
// the gradients are follows from what is asked for:
//   a position            one tensor
//   several positions     a vector of tensors
//   weights               a vector of tensors, one per parameter
//   positions and weights a pair of both
template <class F>
auto value_and_grad(F fn, int position = 0, bool has_aux = false, Where where = Where::here()) {
  return internal::GradFunction<F, internal::GradOf::kOne, false, true>(
      std::move(fn), {{position}, {}, has_aux, where});
}
template <class F>
auto value_and_grad(F fn, std::vector<int> positions, bool has_aux = false,
                    Where where = Where::here()) {
  return internal::GradFunction<F, internal::GradOf::kMany, false, true>(
      std::move(fn), {std::move(positions), {}, has_aux, where});
}
template <class F>
auto value_and_grad(F fn, std::nullopt_t, std::vector<Parameter> weights, bool has_aux = false,
                    Where where = Where::here()) {
  return internal::GradFunction<F, internal::GradOf::kNone, true, true>(
      std::move(fn), {{}, std::move(weights), has_aux, where});
}
template <class F>
auto value_and_grad(F fn, int position, std::vector<Parameter> weights, bool has_aux = false,
                    Where where = Where::here()) {
  return internal::GradFunction<F, internal::GradOf::kOne, true, true>(
      std::move(fn), {{position}, std::move(weights), has_aux, where});
}
template <class F>
auto value_and_grad(F fn, std::vector<int> positions, std::vector<Parameter> weights,
                    bool has_aux = false, Where where = Where::here()) {
  return internal::GradFunction<F, internal::GradOf::kMany, true, true>(
      std::move(fn), {std::move(positions), std::move(weights), has_aux, where});
}

// Functions that return the gradients alone.
template <class F>
auto grad(F fn, int position = 0, Where where = Where::here()) {
  return internal::GradFunction<F, internal::GradOf::kOne, false, false>(
      std::move(fn), {{position}, {}, false, where});
}
template <class F>
auto grad(F fn, std::vector<int> positions, Where where = Where::here()) {
  return internal::GradFunction<F, internal::GradOf::kMany, false, false>(
      std::move(fn), {std::move(positions), {}, false, where});
}
template <class F>
auto grad(F fn, int position, std::vector<Parameter> weights, Where where = Where::here()) {
  return internal::GradFunction<F, internal::GradOf::kOne, true, false>(
      std::move(fn), {{position}, std::move(weights), false, where});
}
template <class F>
auto grad(F fn, std::vector<int> positions, std::vector<Parameter> weights,
          Where where = Where::here()) {
  return internal::GradFunction<F, internal::GradOf::kMany, true, false>(
      std::move(fn), {std::move(positions), std::move(weights), false, where});
}
template <class F>
auto grad(F fn, std::nullopt_t, std::vector<Parameter> weights, Where where = Where::here()) {
  return internal::GradFunction<F, internal::GradOf::kNone, true, false>(
      std::move(fn), {{}, std::move(weights), false, where});
}

}  // namespace ballast
