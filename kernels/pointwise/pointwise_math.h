// Elementary functions as Halide expressions, for pointwise_ops.inc and the loss kernels.
//
// OpenCL's own exp and tanh may round differently per vector width and per device; these are plain
// IEEE arithmetic, so that every lane, tail and device gives the same bits. Largest errors against
// libm in double, over all floats: see pointwise_test.cpp.
#pragma once

#include <Halide.h>

namespace ballast::kernels {

// IEEE comparisons of floats (false with a NaN, but ne true), opaque to Halide's simplifier; plain
// comparisons of integers. Halide's strict comparisons cannot be vectorized for OpenCL.
Halide::Expr lt(const Halide::Expr& a, const Halide::Expr& b);
Halide::Expr le(const Halide::Expr& a, const Halide::Expr& b);
Halide::Expr eq(const Halide::Expr& a, const Halide::Expr& b);
Halide::Expr ne(const Halide::Expr& a, const Halide::Expr& b);

Halide::Expr exp_f32(const Halide::Expr& x);
Halide::Expr log_f32(const Halide::Expr& x);
Halide::Expr tanh_f32(const Halide::Expr& x);
Halide::Expr sigmoid_f32(const Halide::Expr& x);
// Float to integer: toward zero, saturating, NaN to 0. Between integers: the low bits. Anything but
// zero is true.
Halide::Expr convert(const Halide::Type& type, const Halide::Expr& x);

}  // namespace ballast::kernels
