// The multiply-add of all kernels, spelled out: OpenCL contracts nothing by itself here.
#pragma once

#include <Halide.h>

namespace ballast::kernels {

// a b + c, rounded once.
inline Halide::Expr fma_f32(const Halide::Expr& a, const Halide::Expr& b, const Halide::Expr& c) {
  using Halide::Internal::Call;
  return Call::make(Halide::Float(32), "fma", {a, b, c}, Call::PureExtern);
}

}  // namespace ballast::kernels
