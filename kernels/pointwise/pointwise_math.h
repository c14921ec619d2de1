// Elementary functions as Halide expressions, for pointwise_ops.inc and the kernels of other
// families.
//
// OpenCL's own functions may round differently per vector width and per device; these are plain
// IEEE arithmetic and fma, so that every lane, tail and device gives the same bits, fused or not.
// Denormals count, a NaN comes out as a NaN. Largest errors against libm in double, over all
// floats: see pointwise_test.cpp.
#pragma once

#include "kernels/recipe/fma.h"

#include <Halide.h>

#include <initializer_list>

namespace ballast::kernels {

// IEEE comparisons of floats (false with a NaN, but ne true), opaque to Halide's simplifier; plain
// comparisons of integers. Halide's strict comparisons cannot be vectorized for OpenCL.
Halide::Expr lt(const Halide::Expr& a, const Halide::Expr& b);
Halide::Expr le(const Halide::Expr& a, const Halide::Expr& b);
Halide::Expr eq(const Halide::Expr& a, const Halide::Expr& b);
Halide::Expr ne(const Halide::Expr& a, const Halide::Expr& b);

// By Horner's rule, the highest power first.
Halide::Expr polynomial(const Halide::Expr& x, std::initializer_list<float> coefficients);
// The whole number nearest to x, halves to the even one; and toward zero.
Halide::Expr rint_f32(const Halide::Expr& x);
Halide::Expr trunc_f32(const Halide::Expr& x);
// |magnitude| with the sign of `sign`, zeros too.
Halide::Expr copysign_f32(const Halide::Expr& magnitude, const Halide::Expr& sign);

// The smaller or larger of x and a number, one instruction each; a NaN x stays.
Halide::Expr at_most(const Halide::Expr& x, float limit);
Halide::Expr at_least(const Halide::Expr& x, float limit);

Halide::Expr exp_f32(const Halide::Expr& x);
// exp(x) for x <= 0, faster: relative error 2e-7 and 2e-9 |x|, 0 below -87.7; a NaN stays. What
// softmax and attention spend their time in.
Halide::Expr exp_of_negative(const Halide::Expr& x);
Halide::Expr exp2_f32(const Halide::Expr& x);
Halide::Expr expm1_f32(const Halide::Expr& x);
Halide::Expr sinh_f32(const Halide::Expr& x);
Halide::Expr cosh_f32(const Halide::Expr& x);
Halide::Expr tanh_f32(const Halide::Expr& x);
Halide::Expr sigmoid_f32(const Halide::Expr& x);  // 0 where exp(-x) overflows, below -88
// The product of `factor` and sigmoid(x).
Halide::Expr times_sigmoid_f32(const Halide::Expr& factor, const Halide::Expr& x);
Halide::Expr silu_f32(const Halide::Expr& x);

Halide::Expr log_f32(const Halide::Expr& x);
Halide::Expr log2_f32(const Halide::Expr& x);
Halide::Expr log10_f32(const Halide::Expr& x);
Halide::Expr log1p_f32(const Halide::Expr& x);
Halide::Expr asinh_f32(const Halide::Expr& x);
Halide::Expr acosh_f32(const Halide::Expr& x);
Halide::Expr atanh_f32(const Halide::Expr& x);
Halide::Expr softplus_f32(const Halide::Expr& x);  // log(1 + exp(x))
// C's rules for zeros, infinities and NaN: pow(1, y) and pow(x, 0) are 1 always.
Halide::Expr pow_f32(const Halide::Expr& x, const Halide::Expr& y);

// Right for every angle, however large.
Halide::Expr sin_f32(const Halide::Expr& x);
Halide::Expr cos_f32(const Halide::Expr& x);
Halide::Expr tan_f32(const Halide::Expr& x);
Halide::Expr atan_f32(const Halide::Expr& x);
Halide::Expr atan2_f32(const Halide::Expr& y, const Halide::Expr& x);
Halide::Expr asin_f32(const Halide::Expr& x);
Halide::Expr acos_f32(const Halide::Expr& x);

Halide::Expr erf_f32(const Halide::Expr& x);
Halide::Expr erfc_f32(const Halide::Expr& x);
// x Phi(x), Phi the normal distribution function; and with the tanh approximation. The derivatives
// of both.
Halide::Expr gelu_f32(const Halide::Expr& x);
Halide::Expr gelu_tanh_f32(const Halide::Expr& x);
Halide::Expr gelu_slope_f32(const Halide::Expr& x);
Halide::Expr gelu_tanh_slope_f32(const Halide::Expr& x);

// Floats: pow_f32. Integers modulo 2^bits; a negative power of what is not 1 or -1 is 0.
Halide::Expr power(const Halide::Expr& a, const Halide::Expr& b);

// Integers modulo 2^bits, also where several steps become one expression; floats as they are.
Halide::Expr wrapped_add(const Halide::Expr& a, const Halide::Expr& b);
Halide::Expr wrapped_sub(const Halide::Expr& a, const Halide::Expr& b);
Halide::Expr wrapped_mul(const Halide::Expr& a, const Halide::Expr& b);

// numpy's floor_divide and remainder (the result has the divisor's sign). Integers: by zero gives
// 0, the smallest by -1 itself.
Halide::Expr floor_div(const Halide::Expr& a, const Halide::Expr& b);
Halide::Expr floor_mod(const Halide::Expr& a, const Halide::Expr& b);
// numpy's: shifting by the width or more, or by a negative number, leaves 0 (-1 if negative and to
// the right).
Halide::Expr left_shift(const Halide::Expr& a, const Halide::Expr& b);
Halide::Expr right_shift(const Halide::Expr& a, const Halide::Expr& b);

// Float to integer: toward zero, saturating, NaN to 0. Between integers: the low bits. Anything but
// zero is true.
Halide::Expr convert(const Halide::Type& type, const Halide::Expr& x);

}  // namespace ballast::kernels
