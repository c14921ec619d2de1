// Asking for the next row while this one is computed: a CPU's own prefetching ends with the page,
// and its window of instructions is shorter than a row.
#pragma once

#include "kernels/hints.h"
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

}  // namespace ballast::kernels
