// Forward-mode differentiation: a transform from Program to Program, and jvp for functions, which
// works wherever grad does. A primitive's tangents come from its jvp row, or, where it has none,
// from its vjp rule: that is linear in the cotangent u, and the transpose of u -> J'u is t -> J t.
#pragma once

#include "frontend/transforms/vjp.h"

#include <tuple>
#include <utility>
#include <vector>

namespace ballast {

// The program that also takes a tangent for each input named in `inputs` (after the program's
// inputs) and also returns one for each output of a float type (after the program's outputs).
[[nodiscard]] Program forward(const Program& program, const std::vector<size_t>& inputs);

namespace internal {

// Outputs, then one tangent per output, undefined where it is not a float.
std::vector<Tensor> run_jvp(const FlatFunction& fn, const std::vector<Tensor>& primals,
                            const std::vector<Tensor>& tangents);

template <class T>
struct IsStdTuple : std::false_type {};
template <class... T>
struct IsStdTuple<std::tuple<T...>> : std::true_type {};

// A function's arguments: a tuple is all of them, anything else the only one.
template <class T>
auto arguments_of(const T& given) {
  if constexpr (IsStdTuple<T>::value) {
    return std::apply([](const auto&... each) { return std::make_tuple(as_argument(each)...); },
                      given);
  } else {
    return std::make_tuple(as_argument(given));
  }
}

}  // namespace internal

// {fn(primals), its derivative in the direction of the tangents}. Primals are one argument or a
// tuple of several; tangents have the same form. An undefined tangent stands for zero, which is all
// that an integer or bool can have; of such outputs the tangent is undefined. Parameters that fn
// reads count as constants, unless they are passed as primals.
//   auto [y, dy] = jvp(f, x, dx);
//   auto [y, dy] = jvp(f, std::tuple(x, w), std::tuple(dx, dw));
template <class F, class Primals, class Tangents>
auto jvp(F fn, const Primals& primals, const Tangents& tangents, Where where = Where::here()) {
  const auto arguments = internal::arguments_of(primals);
  internal::Flattened flat(fn, arguments);
  const std::vector<Tensor> results = at_line(where, [&] {
    return internal::run_jvp(flat.function(), leaves_of(arguments),
                             leaves_of(internal::arguments_of(tangents)));
  });
  auto next = results.cbegin();
  auto value = flat.value(next);
  auto derivative = flat.value(next);
  return std::pair(std::move(value), std::move(derivative));
}

}  // namespace ballast
