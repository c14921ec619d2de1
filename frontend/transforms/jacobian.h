// Whole matrices of derivatives, from vmap over jvp or over a pullback, and products with a matrix
// of second derivatives, which need none of it.
#pragma once

#include "frontend/transforms/jvp.h"
#include "frontend/transforms/vmap.h"

#include <tuple>
#include <utility>
#include <vector>

namespace ballast {

namespace internal {

enum class Direction { kForward, kReverse };

// The derivatives of every output by the argument at `position`.
std::vector<Tensor> run_jacobian(const FlatFunction& fn, const std::vector<Tensor>& leaves,
                                 const std::vector<size_t>& leaf_counts, int position,
                                 Direction direction);

template <class F>
class Jacobian {
 public:
  Jacobian(F fn, int position, Direction direction, const Where& where)
      : fn_(std::move(fn)), position_(position), direction_(direction), where_(where) {}

  template <class... Args>
  auto operator()(const Args&... args) {
    auto arguments = std::make_tuple(as_argument(args)...);
    Flattened flat(fn_, arguments);
    return at_line(where_, [&] {
      return flat.value(run_jacobian(flat.function(), leaves_of(arguments), {leaf_count(args)...},
                                     position_, direction_));
    });
  }

 private:
  F fn_;
  int position_;
  Direction direction_;
  Where where_;  // the user's line, for errors that name none
};

}  // namespace internal

// The function of all d value / d argument `position` (one float tensor): a tree like the value,
// each tensor of shape [value..., argument...]. jacfwd costs one jvp per element of the argument,
// jacrev one pullback per element of the value; either runs them all at once.
template <class F>
auto jacfwd(F fn, int position = 0, Where where = Where::here()) {
  return internal::Jacobian<F>(std::move(fn), position, internal::Direction::kForward, where);
}
template <class F>
auto jacrev(F fn, int position = 0, Where where = Where::here()) {
  return internal::Jacobian<F>(std::move(fn), position, internal::Direction::kReverse, where);
}

// The function of all second derivatives by argument `position`: [value..., argument...,
// argument...].
template <class F>
auto hessian(F fn, int position = 0, Where where = Where::here()) {
  return jacfwd(jacrev(std::move(fn), position, where), position, where);
}

// The matrix of second derivatives of a scalar function times v, forward over reverse: at the price
// of a few gradients. Arguments as for jvp; the result has the form of x.
template <class F, class X, class V>
auto hvp(F fn, const X& x, const V& v, Where where = Where::here()) {
  auto gradients = [&fn, &where](const auto&... args) {
    auto [value, pullback] = vjp(fn, args...);
    return pullback(Tensor::ones({}, value.dtype()), where);
  };
  auto product = jvp(gradients, internal::arguments_of(x), internal::arguments_of(v)).second;
  if constexpr (internal::IsStdTuple<X>::value) {
    return product;
  } else {
    return std::get<0>(std::move(product));
  }
}

}  // namespace ballast
