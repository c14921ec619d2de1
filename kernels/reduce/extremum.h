// The largest or the least of floats, NaN where one is, in two instructions an element: a total of
// the best, which passes over NaN, beside a sum of squares, which is NaN where an element is.
#pragma once

#include "kernels/pointwise/pointwise_math.h"

#include <Halide.h>

#include <cmath>
#include <limits>

namespace ballast::kernels {

inline Halide::Expr larger(const Halide::Expr& total, const Halide::Expr& value) {
  return select(lt(total, value), value, total);
}
inline Halide::Expr smaller(const Halide::Expr& total, const Halide::Expr& value) {
  return select(lt(value, total), value, total);
}
inline Halide::Expr with_square(const Halide::Expr& total, const Halide::Expr& value) {
  return fma_f32(value, value, total);
}
inline Halide::Expr extremum(const Halide::Expr& best, const Halide::Expr& squares) {
  return select(ne(squares, squares), std::numeric_limits<float>::quiet_NaN(), best);
}

}  // namespace ballast::kernels
