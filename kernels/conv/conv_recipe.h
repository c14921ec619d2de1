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

// `value`, and a request for the memory of `element`, a vector of a tensor (kernel_source.cpp).
inline Halide::Expr prefetched(const Halide::Expr& value, const Halide::Expr& element) {
  return Halide::Internal::Call::make(Halide::Float(32), "ballast_prefetch", {value, element},
                                      Halide::Internal::Call::PureExtern);
}

}  // namespace ballast::kernels
