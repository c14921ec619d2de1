// Expressions and layouts that the tiled attention kernels share. Needs Halide; stateless.
#pragma once

#include "kernels/attention/attention_limits.h"
#include "kernels/recipe/fma.h"
#include "kernels/recipe/layout.h"
#include "kernels/recipe/pairwise_sum.h"
#include "kernels/reduce/extremum.h"

#include <Halide.h>

#include <limits>
#include <vector>

namespace ballast::kernels::attention {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// value, or 0 for -infinity (the largest score of a row without any): scores less it are not NaN.
inline Halide::Expr finite_or_zero(const Halide::Expr& value) {
  return select(eq(value, -kInfinity), 0.0f, value);
}

// scale q k' and what is added to it: 0, the mask [batch][head][query][key] (strides of 0 repeat)
// if there is one, or -infinity where query i may not see the key, which is behind i + diagonal. h
// counts batch x heads.
template <class Mask>
Halide::Expr score_of(const Halide::Expr& product, const Halide::Expr& scale, Mask* mask,
                      const Halide::Expr& query, const Halide::Expr& key, const Halide::Expr& h,
                      const Halide::Expr& diagonal) {
  Halide::Expr value = product * scale;
  if (mask != nullptr) {
    const Halide::Expr heads = mask->dim(2).extent();
    value += (*mask)(key, query, h % heads, h / heads);
  }
  return select(key <= query + diagonal, value, -kInfinity);
}

// What scores are taken less of, to be weights: a query without keys has lse = -infinity.
inline Halide::Expr shift_of(const Halide::Expr& lse) {
  return select(eq(lse, -kInfinity), kInfinity, lse);
}

// The first dimension is the lanes of a vector, the second whole vectors.
template <class Tensor>
void set_vectors(Tensor& tensor, int lanes = kLanes) {
  set_mins(tensor);
  tensor.dim(0).set_bounds(0, lanes).set_stride(1);
  tensor.dim(1).set_stride(lanes);
}

}  // namespace ballast::kernels::attention
