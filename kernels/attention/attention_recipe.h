// Expressions and layouts that the tiled attention kernels share. Needs Halide; stateless.
#pragma once

#include "kernels/attention/attention_limits.h"
#include "kernels/fma.h"
#include "kernels/layout.h"
#include "kernels/pairwise_sum.h"
#include "kernels/reduce/extremum.h"

#include <Halide.h>

#include <limits>
#include <vector>

namespace ballast::kernels::attention {

constexpr int kUnrolled = 4;  // steps of a sum whose addresses are one and constants
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// value, or 0 for -infinity (the largest score of a row without any): scores less it are not NaN.
inline Halide::Expr finite_or_zero(const Halide::Expr& value) {
  return select(eq(value, -kInfinity), 0.0f, value);
}

// The first dimension is the lanes of a vector, the second whole vectors.
template <class Tensor>
void set_vectors(Tensor& tensor) {
  set_mins(tensor);
  tensor.dim(0).set_bounds(0, kLanes).set_stride(1);
  tensor.dim(1).set_stride(kLanes);
}

}  // namespace ballast::kernels::attention
