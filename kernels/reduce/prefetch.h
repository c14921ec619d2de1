// Asking for the next row while this one is computed: a CPU's own prefetching ends with the page,
// and its window of instructions is shorter than a row. Asking for the row of the result while this
// one is folded: the stores of a later pass wait for their lines one after the other.
#pragma once

#include "kernels/recipe/hints.h"
#include "kernels/reduce/axis_recipe.h"

namespace ballast::kernels {

// `value`, and a request for the vector after `element`, an access at nest.r and nest.row of a
// tensor of so many rows, in the next row.
inline Halide::Expr with_next_row(const AxisNest& nest, const Halide::Expr& value,
                                  const Halide::Expr& element, const Halide::Expr& rows) {
  if (!nest.is_rows || nest.is_gpu) return value;
  const Halide::Expr next = min(nest.row + nest.rows_at_once, rows - 1);
  return with_prefetch(value, Halide::Internal::substitute(nest.row.name(), next, element));
}

// `value`, and a request for the vector that `result`, a tensor that is not written past the
// caches, has at nest.r and nest.row.
inline Halide::Expr with_row_of(const AxisNest& nest, const Halide::OutputImageParam& result,
                                const Halide::Expr& value) {
  if (!nest.is_rows || nest.is_gpu) return value;
  return with_result_prefetch(value, result.name(), nest.r + nest.row * result.dim(1).stride());
}

}  // namespace ballast::kernels
