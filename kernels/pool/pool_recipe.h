// What the generators of poolings share. Needs Halide; stateless.
#pragma once

#include "kernels/pool/pool_limits.h"

#include <Halide.h>

namespace ballast::kernels {

// The elements that a window starting at `start` averages over, along one axis.
inline Halide::Expr count_along(const Halide::Expr& start, const Halide::Expr& kernel,
                                const Halide::Expr& extent, const Halide::Expr& after,
                                const Halide::Expr& counts_padding) {
  const Halide::Expr inside = min(start + kernel, extent) - max(start, 0);
  return select(counts_padding != 0, min(start + kernel, extent + after) - start, inside);
}

}  // namespace ballast::kernels
