// What the generators of convolutions share. Needs Halide; stateless.
#pragma once

#include <Halide.h>

namespace ballast::kernels {

constexpr int kLanes = 16;

// Spelled out, because OpenCL contracts nothing by itself here.
inline Halide::Expr fused_multiply_add(const Halide::Expr& a, const Halide::Expr& b,
                                       const Halide::Expr& c) {
  return Halide::Internal::Call::make(Halide::Float(32), "fma", {a, b, c},
                                      Halide::Internal::Call::PureExtern);
}

// `value`, to which an epilogue adds what it has: a bias, a scale and a shift, a residual. Each
// step is rounded.
inline Halide::Expr with_terms(Halide::Expr value, const Halide::Expr& has_bias,
                               const Halide::Expr& bias, const Halide::Expr& has_scale,
                               const Halide::Expr& scale, const Halide::Expr& shift,
                               const Halide::Expr& has_residual, const Halide::Expr& residual) {
  using Halide::strict_float;
  value = select(has_bias != 0, strict_float(value + bias), value);
  value = select(has_scale != 0, strict_float(strict_float(value * scale) + shift), value);
  return select(has_residual != 0, strict_float(value + residual), value);
}

}  // namespace ballast::kernels
