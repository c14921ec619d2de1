// What the files of pointwise_math.h share. Included by them only.
#pragma once

#include "kernels/pointwise/pointwise_math.h"

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

// The bits of a float, unsigned: overflow of signed integers is undefined in Halide and in C.
Halide::Expr bits_of(const Halide::Expr& x);
Halide::Expr as_float(const Halide::Expr& bits);
Halide::Expr word(uint32_t bits);  // a number as such bits
constexpr uint32_t kSignBit = 0x80000000u, kNoSignBit = 0x7fffffffu;
Halide::Expr abs_f32(const Halide::Expr& x);

// A power of 2 as exp and its kin make it: 2^floor(whole). What `sum` holds, and whether `whole` is
// whole or has sixteenths, is up to the functions of source_functions.cpp.
struct Exponent {
  Halide::Expr sum, whole;
};
// Of 2^(x octaves): `octaves` is how many a unit of x is.
Exponent exponent_of(const Halide::Expr& x, const Halide::Expr& octaves);
// y 2^floor(whole), -252 <= whole <= 254: overflows to infinity and underflows through the
// denormals with one rounding.
Halide::Expr scaled(const Halide::Expr& y, const Exponent& exponent);
// exp(rest) times what `whole` is more than a whole number, for the small `rest` that it leaves.
Halide::Expr power_near(const Halide::Expr& rest, const Exponent& exponent);

// A number as value 2^floor(whole).
struct Power {
  Halide::Expr value;
  Exponent exponent;
};
Power split_exp(const Halide::Expr& x);  // exp(x); below -174 that of -174

}  // namespace ballast::kernels
