// How composites treat narrow floats, whose sums and counts soon overflow.
#pragma once

#include "frontend/ops/pointwise.h"

namespace ballast::ops {

// fn(x), computed in f32 and rounded once if x is bf16 or f16: what single ops do in their kernels.
template <class Fn>
Tensor in_f32(const Tensor& x, const Fn& fn) {
  if (x.dtype() != DType::kBF16 && x.dtype() != DType::kF16) return fn(x);
  return cast(fn(cast(x, DType::kF32)), x.dtype());
}

}  // namespace ballast::ops
