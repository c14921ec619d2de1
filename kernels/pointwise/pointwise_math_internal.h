// What the files of pointwise_math.h share. Included by them only.
#pragma once

#include "kernels/pointwise/pointwise_math.h"

#include <initializer_list>
#include <limits>

namespace ballast::kernels {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kLn2 = 0.693147180559945309f;
constexpr float kLog2E = 1.44269504088896341f;
// ln 2 in two parts, both positive: the first has trailing zeros, so that its product with an
// exponent is exact.
constexpr float kLn2High = 0.693145752f;
constexpr float kLn2Low = 1.42860677e-6f;

// By Horner's rule, the highest power first.
Halide::Expr polynomial(const Halide::Expr& x, std::initializer_list<float> coefficients);
// The bits of a float, unsigned: overflow of signed integers is undefined in Halide and in C.
Halide::Expr bits_of(const Halide::Expr& x);
Halide::Expr as_float(const Halide::Expr& bits);
Halide::Expr word(uint32_t bits);  // a number as such bits
constexpr uint32_t kSignBit = 0x80000000u, kNoSignBit = 0x7fffffffu;
Halide::Expr abs_f32(const Halide::Expr& x);

// x = whole ln 2 + rest. `sum` carries 254 + whole in its low bits: adding 1.5 2^23 + 254 rounds to
// a whole number there, without conversions.
struct Exponent {
  Halide::Expr sum, whole, rest;
};
Exponent split_exponent(const Halide::Expr& x);
Exponent split_exponent2(const Halide::Expr& x);  // of 2^x, with rest in units of 1
// exp(rest) - 1 and exp(rest) for |rest| <= ln 2 / 2.
Halide::Expr small_expm1(const Halide::Expr& rest);
Halide::Expr exp_near(const Halide::Expr& rest);
// y 2^whole, -252 <= whole <= 254, in two steps: overflows to infinity and underflows through the
// denormals with one rounding.
Halide::Expr scaled(const Halide::Expr& y, const Exponent& exponent);

}  // namespace ballast::kernels
