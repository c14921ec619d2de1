// Arithmetic of places that are no negative numbers, for GPUs. Needs Halide; stateless.
#pragma once

#include <Halide.h>

namespace ballast::kernels {

// Of numbers none of which is negative: plain division, where Halide's own rounds down and expects
// anything.
inline Halide::Expr over(const Halide::Expr& a, const Halide::Expr& b) {
  return unsafe_promise_clamped(div_round_to_zero(a, b), 0, a);
}
inline Halide::Expr modulo(const Halide::Expr& a, const Halide::Expr& b) {
  return unsafe_promise_clamped(mod_round_to_zero(a, b), 0, b - 1);
}

// The same of numbers below 2^20, for loops, whose compilers divide by a number that is not known
// in some twenty instructions.
inline Halide::Expr quick_over(const Halide::Expr& a, const Halide::Expr& b) {
  const Halide::Expr of_one = 1.0f / Halide::cast<float>(b);
  return unsafe_promise_clamped(Halide::cast<int>((Halide::cast<float>(a) + 0.5f) * of_one), 0, a);
}

// Whether 0 <= at < end: one comparison, of numbers without sign.
inline Halide::Expr is_below(const Halide::Expr& at, const Halide::Expr& end) {
  return Halide::cast<uint32_t>(at) < Halide::cast<uint32_t>(end);
}

}  // namespace ballast::kernels
