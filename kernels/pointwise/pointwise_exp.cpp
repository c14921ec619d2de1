// exp, log and their kin: Cephes' polynomials, evaluated with fma.
#include "kernels/pointwise/pointwise_math_internal.h"

using Halide::Expr;
using Halide::select;

namespace ballast::kernels {
namespace {

constexpr float kRound = 12583166.0f;  // 1.5 2^23 + 254
constexpr float kLowest = -110.0f;     // even times 110 the exponential is nothing

Expr minus_abs(const Expr& x) { return as_float(bits_of(x) | word(kSignBit)); }

}  // namespace

Exponent split_exponent(const Expr& x) {
  const Expr sum = fma_f32(x, kLog2E, kRound);
  const Expr whole = sum - kRound;
  return {sum, whole, fma_f32(whole, -kLn2Low, fma_f32(whole, -kLn2High, x))};
}

Exponent split_exponent2(const Expr& x) {
  const Expr sum = x + kRound;
  const Expr whole = sum - kRound;
  return {sum, whole, x - whole};
}

Expr small_expm1(const Expr& r) {
  const Expr p = polynomial(r, {1.9875691500e-4f, 1.3981999507e-3f, 8.3334519073e-3f,
                                4.1665795894e-2f, 1.6666665459e-1f, 5.0000001201e-1f});
  return fma_f32(p, r * r, r);
}

Expr scaled(const Expr& y, const Exponent& exponent) {
  return Halide::Internal::Call::make(Halide::Float(32), "ballast_scale",
                                      {y, exponent.sum, exponent.whole},
                                      Halide::Internal::Call::PureExtern);
}

Expr exp_f32(const Expr& x) {
  const Exponent e = split_exponent(at_least(at_most(x, 89.0f), kLowest));
  return scaled(small_expm1(e.rest) + 1.0f, e);
}

Expr exp2_f32(const Expr& x) {
  const Exponent e = split_exponent2(at_least(at_most(x, 129.0f), -151.0f));
  return scaled(small_expm1(e.rest * kLn2) + 1.0f, e);
}

namespace {

// 2^-shift (exp(x) - 1) = 2^(n - shift) (exp(r) - 1) + (2^(n - shift) - 2^-shift), for x up to 89
// (shift 1) or 89.5 (shift 2): does not overflow where exp(x) just does.
Expr part_of_expm1(const Expr& x, uint32_t shift) {
  const Exponent e = split_exponent(x);
  const Expr scale = as_float((bits_of(e.sum) - word(127 + shift)) << 23);
  return fma_f32(small_expm1(e.rest), scale, scale - (shift == 1 ? 0.5f : 0.25f));
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

// With h = (exp(2 |x|) - 1) / 2: h / (h + 1).
Expr tanh_f32(const Expr& x) {
  const Expr magnitude = abs_f32(x);
  const Expr h = part_of_expm1(at_most(magnitude + magnitude, 20.0f), 1);
  return copysign_f32(h / (h + 1.0f), x);
}

// The exponential of -|x| never overflows, so that small results keep their precision; the factor
// is in before a result becomes a denormal.
Expr times_sigmoid_f32(const Expr& factor, const Expr& x) {
  const Exponent e = split_exponent(at_least(minus_abs(x), kLowest));
  const Expr power = small_expm1(e.rest) + 1.0f;
  const Expr numerator = select(lt(x, 0.0f), scaled(power * factor, e), factor);
  return numerator / (1.0f + scaled(power, e));
}

Expr sigmoid_f32(const Expr& x) {
  const Expr e = exp_f32(minus_abs(x));
  return select(lt(x, 0.0f), e, 1.0f) / (1.0f + e);
}

namespace {

// log(x) = exponent ln 2 + (f + tail), x = 2^exponent (1 + f), 1 + f in [sqrt(1/2), sqrt(2)).
struct Logarithm {
  Expr exponent, f, tail;
};

// x = 2^exponent fraction with the fraction in [sqrt(1/2), sqrt(2)), for normal x.
struct Normal {
  Expr exponent, fraction;
};

Normal split_normal(const Expr& x) {
  const Expr bits = bits_of(x);
  const Expr shifted = bits - word(0x3f3504f3);  // the bits of sqrt(1/2)
  const Expr e = Halide::reinterpret(Halide::Int(32), shifted) >> 23;
  return {Halide::cast<float>(e), as_float(bits - (shifted & word(0xff800000)))};
}

Logarithm split_log(const Expr& x, bool has_denormals = true) {
  const Expr is_small = lt(x, 1.17549435e-38f);  // denormals are scaled up by 2^23
  const Normal n = split_normal(has_denormals ? select(is_small, x * 8388608.0f, x) : x);
  const Expr whole = n.exponent;
  const Expr f = n.fraction - 1.0f;
  const Expr z = f * f;
  const Expr p = polynomial(f, {7.0376836292e-2f, -1.1514610310e-1f, 1.1676998740e-1f,
                                -1.2420140846e-1f, 1.4249322787e-1f, -1.6668057665e-1f,
                                2.0000714765e-1f, -2.4999993993e-1f, 3.3333331174e-1f});
  return {has_denormals ? whole - select(is_small, 23.0f, 0.0f) : whole, f,
          fma_f32(z, -0.5f, p * f * z)};
}

// `finite` is right for positive numbers.
Expr with_limits(const Expr& x, const Expr& finite) {
  const Expr negative = select(eq(x, 0.0f), -kInfinity, kNaN);
  return select(lt(0.0f, x), select(eq(x, kInfinity), x, finite), negative);
}

Expr sum_log(const Logarithm& log, const Expr& correction = Expr()) {
  const Expr low = fma_f32(log.exponent, kLn2Low, log.tail);
  const Expr near = log.f + (correction.defined() ? low + correction : low);
  return fma_f32(log.exponent, kLn2High, near);
}

}  // namespace

Expr log_f32(const Expr& x) { return with_limits(x, sum_log(split_log(x))); }

Expr log2_f32(const Expr& x) {
  const Logarithm log = split_log(x);
  return with_limits(x, fma_f32(log.f + log.tail, kLog2E, log.exponent));
}

Expr log10_f32(const Expr& x) {
  constexpr float kLog10E = 0.434294481903251828f;
  constexpr float kHigh = 0.30078125f, kLow = 2.48745664e-4f;  // log10(2)
  const Logarithm log = split_log(x);
  const Expr low = fma_f32(log.exponent, kLow, (log.f + log.tail) * kLog10E);
  return with_limits(x, fma_f32(log.exponent, kHigh, low));
}

// log(u) + (what rounding u = 1 + x lost) / u
Expr log1p_f32(const Expr& x) {
  const Expr u = x + 1.0f;
  const Expr back = u - 1.0f;
  const Expr lost = (1.0f - (u - back)) + (x - back);
  const Expr finite = sum_log(split_log(u, /*has_denormals=*/false), lost / u);
  return copysign_f32(with_limits(u, finite), x);
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
  return copysign_f32(0.5f * log1p_f32((a + a) / (1.0f - a)), x) + select(lt(1.0f, a), kNaN, 0.0f);
}

Expr softplus_f32(const Expr& x) {
  const Expr e = exp_f32(minus_abs(x));
  return at_least(x, 0.0f) + log1p_f32(e);
}

namespace {

// log2(a) for 0 < a < inf as an unevaluated sum, good to some 2^-31 of itself. With
// s = (m - 1) / (m + 1): log2(m) = 2 / ln 2 (s + s^3 / 3 + s^5 / 5 + ...).
struct DoubleFloat {
  Expr high, low;
};

DoubleFloat precise_log2(const Expr& a) {
  constexpr float kHigh = 2.88539004f, kLow = 3.85192598e-8f;  // 2 / ln 2
  const Expr is_small = lt(a, 1.17549435e-38f);
  const Normal n = split_normal(select(is_small, a * 8388608.0f, a));
  const Expr exponent = n.exponent - select(is_small, 23.0f, 0.0f);
  const Expr m = n.fraction;
  const Expr f = m - 1.0f, d = m + 1.0f;
  const Expr inverse = 1.0f / d;
  const Expr s = f * inverse;
  const Expr rest = fma_f32(-1.0f * s, m - (d - 1.0f), fma_f32(-1.0f * s, d, f)) * inverse;
  const Expr w = s * s;
  const Expr tail =
      s * w * polynomial(w, {0.262308189f, 0.320598898f, 0.412198583f, 0.577078016f, 0.961796694f});
  const Expr h = s * kHigh;
  const Expr l = fma_f32(s, kLow, fma_f32(rest, kHigh, tail)) + fma_f32(s, kHigh, -1.0f * h);
  const Expr sum = exponent + h;
  const Expr low = (h - (sum - exponent)) + l;
  const Expr high = sum + low;
  return {high, low - (high - sum)};
}

}  // namespace

Expr pow_f32(const Expr& x, const Expr& y) {
  const Expr a = abs_f32(x);
  const DoubleFloat log = precise_log2(a);
  const Expr high = select(eq(a, 0.0f), -kInfinity, select(eq(a, kInfinity), kInfinity, log.high));
  const Expr times = select(eq(a, 1.0f), 0.0f, y);  // else infinity times zero
  const Expr product = times * high;
  const Expr lost = fma_f32(times, log.low, fma_f32(times, high, -1.0f * product));
  const Expr is_ordinary = lt(abs_f32(product), 160.0f);
  Exponent e = split_exponent2(at_least(at_most(product, 130.0f), -155.0f));
  const Expr rest = (e.rest + select(is_ordinary, lost, 0.0f)) * kLn2;
  const Expr magnitude = scaled(small_expm1(rest) + 1.0f, e);

  const Expr half = y * 0.5f;
  const Expr is_whole = eq(rint_f32(y), y);
  const Expr is_odd = is_whole && ne(rint_f32(half), half);
  const Expr sign = select(is_odd, bits_of(x) & word(kSignBit), word(0));
  const Expr is_nan = ne(x, x) || ne(y, y) || (lt(x, 0.0f) && lt(a, kInfinity) && !is_whole);
  const Expr result = select(is_nan, kNaN, as_float(bits_of(magnitude) | sign));
  return select(eq(x, 1.0f) || eq(y, 0.0f), 1.0f, result);
}

}  // namespace ballast::kernels
