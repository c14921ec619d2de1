// exp, log and their kin. Polynomials are by Estrin's scheme: half as long a chain of fma as
// Horner's.
#include "kernels/pointwise/pointwise_math_internal.h"

using Halide::Expr;
using Halide::select;

namespace ballast::kernels {
namespace {

// One of the functions of source_functions.cpp.
Expr call(const char* function, const std::vector<Expr>& args) {
  using Halide::Internal::Call;
  return Call::make(Halide::Float(32), function, args, Call::PureExtern);
}

// x - octaves ln 2, exact but for the last rounding.
Expr minus_octaves(const Expr& x, const Expr& octaves) {
  return fma_f32(octaves, -kLn2Low, fma_f32(octaves, -kLn2High, x));
}

}  // namespace

Exponent exponent_of(const Expr& x, const Expr& octaves) {
  const Expr sum = call("ballast_exp_sum", {x, octaves});
  return {sum, call("ballast_exp_whole", {sum})};
}

Expr power_near(const Expr& rest, const Exponent& exponent) {
  return call("ballast_exp_value", {rest, exponent.sum});
}

Power split_exp(const Expr& x) {
  const Expr limited = call("ballast_exp_limited", {x});
  const Exponent e = exponent_of(limited, kLog2E);
  return {power_near(minus_octaves(limited, e.whole), e), e};
}

Expr scaled(const Expr& y, const Exponent& exponent) {
  return call("ballast_scale", {y, exponent.sum, exponent.whole});
}

Expr exp_f32(const Expr& x) {
  const Power power = split_exp(x);
  return scaled(power.value, power.exponent);
}

Expr exp_of_negative(const Expr& x) { return call("ballast_exp_of_negative", {x}); }

Expr exp2_f32(const Expr& x) {
  const Expr limited = at_least(at_most(x, 129.0f), -151.0f);
  const Exponent e = exponent_of(limited, 1.0f);
  return scaled(power_near((limited - e.whole) * kLn2, e), e);
}

namespace {

constexpr float kWholeBits = 12582912.0f;  // 1.5 2^23: a sum with it is whole, in its low bits

// (exp(u r) - 1) / u for |u r| <= ln 2 / 2, its largest relative error made least; u a power of 2.
Expr small_expm1(const Expr& r, float u = 1) {
  const float u2 = u * u, u4 = u2 * u2;
  const Expr z = r * r;
  const Expr low = fma_f32(r, u2 * 0.166665211f, u * 0.49999994f);
  const Expr high =
      fma_f32(z, u * u4 * 0.00138186989f, fma_f32(r, u4 * 0.00836871564f, u * u2 * 0.0416682921f));
  return fma_f32(z, fma_f32(z, high, low), r);
}

// 2^-shift (exp(x) - 1) = 2^(n - shift) (exp(r) - 1) + (2^(n - shift) - 2^-shift), for x up to 89
// (shift 1) or 89.5 (shift 2): does not overflow where exp(x) just does.
Expr part_of_expm1(const Expr& x, int shift) {
  const float round = kWholeBits + 127 - shift;  // the low bits hold the exponent
  const Expr sum = fma_f32(x, kLog2E, round);
  const Expr scale = as_float(bits_of(sum) << 23);
  const Expr rest = minus_octaves(x, sum - round);
  return fma_f32(small_expm1(rest), scale, scale - (shift == 1 ? 0.5f : 0.25f));
}

// (exp(|x|) - 1) / 2
Expr half_expm1_of_abs(const Expr& x) {
  const Expr quarter = part_of_expm1(at_most(abs_f32(x), 89.5f), 2);
  return quarter + quarter;
}

}  // namespace

Expr expm1_f32(const Expr& x) {
  const Expr half = part_of_expm1(at_least(at_most(x, 89.0f), -18.0f), 1);
  return copysign_f32(half + half, x);
}

// With h = (exp(|x|) - 1) / 2: exp(-|x|) = 1 / (2 h + 1).
Expr sinh_f32(const Expr& x) {
  const Expr h = half_expm1_of_abs(x);
  const Expr is_tiny = lt(abs_f32(x), 1e-4f);  // the quarter of a denormal is none
  return select(is_tiny, x, copysign_f32(h + h / (at_most(h + h, 3e38f) + 1.0f), x));
}

Expr cosh_f32(const Expr& x) {
  const Expr h = half_expm1_of_abs(x);
  return (h + 0.5f) + 0.5f / (h + h + 1.0f);
}

// With h = (exp(2 x) - 1) / 2 = 2^n (exp(2 r) - 1) / 2 + (2^n - 1) / 2: h / (h + 1). There are so
// few octaves that ln 2 is one number. The sign is for zeros.
Expr tanh_f32(const Expr& x) {
  constexpr float kRound = kWholeBits + 127;
  const Expr limited = at_least(at_most(x, 10.0f), -10.0f);
  const Expr sum = fma_f32(limited, 2 * kLog2E, kRound);
  const Expr scale = as_float(bits_of(sum) << 23);
  const Expr r = fma_f32(sum - kRound, -kLn2 / 2, limited);
  const Expr h = fma_f32(small_expm1(r, 2), scale, fma_f32(scale, 0.5f, -0.5f));
  return as_float(bits_of(h / (h + 1.0f)) | (bits_of(x) & word(kSignBit)));
}

// factor / (1 + exp(-x))
Expr times_sigmoid_f32(const Expr& factor, const Expr& x) {
  const Expr limited = at_least(at_most(x, 18.0f), -89.0f);  // to 1, and to 0
  const Exponent e = exponent_of(limited, -kLog2E);
  const Expr power = power_near(minus_octaves(-limited, e.whole), e);
  return factor / call("ballast_one_plus_scaled", {power, e.sum, e.whole});
}

Expr silu_f32(const Expr& x) { return times_sigmoid_f32(at_least(x, -150.0f), x); }

Expr sigmoid_f32(const Expr& x) { return times_sigmoid_f32(1.0f, x); }

namespace {

// x = 2^exponent fraction with the fraction in [sqrt(1/2), sqrt(2)), for x >= 0. The exponent of 0
// is -infinity, that of infinity and NaN is x itself; their fraction is finite, so that limits come
// out of the sums below by themselves.
struct Normal {
  Expr exponent, fraction;
};

Normal split_normal(const Expr& x) {
  const Expr fraction = call("ballast_fraction", {x});
  return {call("ballast_exponent", {x, fraction}), fraction};
}

// log(x) = exponent ln 2 + (f + tail), x = 2^exponent (1 + f). The exponent of a negative x is NaN.
struct Logarithm {
  Expr exponent, f, tail;
};

// log(1 + f) = f - f^2 / 2 + f^3 p(f), the relative error 6e-9.
Logarithm split_log(const Expr& x) {
  const Normal n = split_normal(x);
  const Expr f = n.fraction - 1.0f, z = f * f;
  const Expr a = fma_f32(f, -0.250008196f, 0.333333313f);
  const Expr b = fma_f32(f, -0.166234091f, 0.200012416f);
  const Expr c = fma_f32(f, -0.131596103f, 0.1420158f);
  const Expr d = fma_f32(f, -0.0763643533f, 0.127622157f);
  const Expr p = fma_f32(z * z, fma_f32(z, d, c), fma_f32(z, b, a));
  return {select(lt(x, 0.0f), kNaN, n.exponent), f, fma_f32(z, -0.5f, p * (f * z))};
}

Expr sum_log(const Logarithm& log, const Expr& correction = Expr()) {
  const Expr low = fma_f32(log.exponent, kLn2Low, log.tail);
  const Expr near = log.f + (correction.defined() ? low + correction : low);
  return fma_f32(log.exponent, kLn2High, near);
}

}  // namespace

Expr log_f32(const Expr& x) { return sum_log(split_log(x)); }

Expr log2_f32(const Expr& x) {
  const Logarithm log = split_log(x);
  return fma_f32(log.f + log.tail, kLog2E, log.exponent);
}

Expr log10_f32(const Expr& x) {
  constexpr float kLog10E = 0.434294481903251828f;
  constexpr float kHigh = 0.30078125f, kLow = 2.48745664e-4f;  // log10(2)
  const Logarithm log = split_log(x);
  const Expr low = fma_f32(log.exponent, kLow, (log.f + log.tail) * kLog10E);
  return fma_f32(log.exponent, kHigh, low);
}

// log(u) + (what rounding u = 1 + x lost) / u, the latter where log(u) is finite
Expr log1p_f32(const Expr& x) {
  const Expr u = x + 1.0f;
  const Expr back = u - 1.0f;
  const Expr lost = (1.0f - (u - back)) + (x - back);
  const Logarithm log = split_log(u);
  const Expr is_finite = lt(abs_f32(log.exponent), kInfinity);
  return copysign_f32(sum_log(log, select(is_finite, lost / u, 0.0f)), x);
}

namespace {

constexpr float kHuge = 1e9f;  // beyond, log(2 x) is as good

}  // namespace

Expr asinh_f32(const Expr& x) {
  const Expr a = abs_f32(x);
  const Expr square = a * a;
  const Expr is_huge = lt(kHuge, a);
  const Expr small = a + square / (1.0f + sqrt(square + 1.0f));
  const Expr log = log1p_f32(select(is_huge, a, small));
  return copysign_f32(log + select(is_huge, kLn2, 0.0f), x);
}

Expr acosh_f32(const Expr& x) {
  const Expr t = x - 1.0f;
  const Expr is_huge = lt(kHuge, x);
  const Expr log = log1p_f32(select(is_huge, x, t + sqrt(fma_f32(t, t, t + t))));
  return select(lt(x, 1.0f), kNaN, log + select(is_huge, kLn2, 0.0f));
}

Expr atanh_f32(const Expr& x) {
  const Expr a = abs_f32(x);
  return select(lt(1.0f, a), kNaN, copysign_f32(0.5f * log1p_f32((a + a) / (1.0f - a)), x));
}

Expr softplus_f32(const Expr& x) {
  const Expr e = exp_f32(-1.0f * abs_f32(x));
  return at_least(x, 0.0f) + log1p_f32(e);
}

namespace {

// log(a) for a >= 0 as an unevaluated sum, good to some 2^-31 of itself; infinite or NaN, `high` is
// it and `low` is of no account.
struct DoubleFloat {
  Expr high, low;
};

// With u = 2 f / (2 + f), log(1 + f) = u + u^3 / 12 + ...; v = u / 2. The residual of u is exact
// but for one rounding, and counts 1 + v^2 times (the derivative of the sum).
DoubleFloat precise_log(const Expr& a) {
  const Normal n = split_normal(a);
  const Expr f = n.fraction - 1.0f, half = f * 0.5f;
  const Expr inverse = 1.0f / fma_f32(f, 0.5f, 1.0f);
  const Expr u = f * inverse, v = half * inverse, w = v * v;
  const Expr rest = fma_f32(-1.0f * u, half, f - u) * fma_f32(inverse, w, inverse);
  const Expr p = fma_f32(w * w, fma_f32(w, 0.121389404f, 0.142494068f),
                         fma_f32(w, 0.200004861f, 0.333333314f));
  const Expr tail = fma_f32(u * w, p, rest);
  const Expr high = fma_f32(n.exponent, kLn2High, u);
  const Expr lost = u - fma_f32(-1.0f * n.exponent, kLn2High, high);
  return {high, fma_f32(n.exponent, kLn2Low, lost) + tail};
}

// |x|^y. Beyond the limits of `product` the result is 0 or infinity whatever was lost.
Expr power_of_abs(const Expr& x, const Expr& y) {
  const DoubleFloat log = precise_log(abs_f32(x));
  const Expr exact = y * log.high;
  const Expr product = at_least(at_most(exact, 95.0f), -110.0f);
  const Expr is_ordinary = eq(product, exact);
  const Expr lost = fma_f32(y, log.low, fma_f32(y, log.high, -1.0f * exact));
  const Expr rest = select(is_ordinary, lost, 0.0f);
  const Exponent e =
      exponent_of(select(is_ordinary, fma_f32(y, log.low, product), product), kLog2E);
  const Expr r = fma_f32(e.whole, -kLn2High, product) + fma_f32(e.whole, -kLn2Low, rest);
  const Expr power = scaled(power_near(r, e), e);
  return select(eq(log.high, 0.0f) || eq(y, 0.0f), 1.0f, power);
}

}  // namespace

// From 2^24 on every y is whole and even.
Expr pow_f32(const Expr& x, const Expr& y) {
  constexpr float kEven = 16777216.0f;
  const Expr limited = at_least(y, -kEven);
  const Expr whole = Halide::cast<int32_t>(select(lt(limited, kEven), limited, kEven));
  const Expr is_whole = eq(Halide::cast<float>(whole), at_most(limited, kEven));  // not of a NaN
  const Expr odd = Halide::reinterpret(Halide::UInt(32), whole) << 31;
  const Expr sign = select(is_whole, bits_of(x) & odd, word(0));
  // All but -0 and -infinity; the difference wraps round for positive numbers.
  const Expr is_negative = bits_of(x) - word(0x80000001u) < word(0x7f7fffffu);
  const Expr result = as_float(bits_of(power_of_abs(x, y)) | sign);
  return select(is_negative && !is_whole, kNaN, result);
}

}  // namespace ballast::kernels
