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

}  // namespace ballast::kernels
