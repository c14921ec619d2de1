// Angles and the error function.
#include "kernels/pointwise/pointwise_math_internal.h"

using Halide::cast;
using Halide::Expr;
using Halide::select;
using Halide::UInt;

namespace ballast::kernels {
namespace {

constexpr float kHalfPi = 1.57079632679489662f;
constexpr float kHalfPiLow = -4.37113901e-8f;  // what kHalfPi lacks

// |x| = quadrant pi / 2 + rest, modulo 2 pi.
struct Angle {
  Expr quadrant, rest;
};

// Three parts of pi / 2 with fma: exact enough up to 2^16.
Angle small_angle(const Expr& a) {
  constexpr float kRoundWhole = 12582912.0f;  // 1.5 2^23
  const Expr sum = fma_f32(a, 0.636619772f, kRoundWhole);
  const Expr whole = sum - kRoundWhole;
  const Expr r = fma_f32(whole, -1.57079601e+00f, a);
  const Expr s = fma_f32(whole, -3.13916473e-07f, r);
  return {bits_of(sum), fma_f32(whole, -5.39030253e-15f, s)};
}

// Payne and Hanek: a = m 2^(e - 23); of m times 2 / pi only the bits below the weight 4 count, so a
// window of 96 bits of 2 / pi, chosen by e, is enough. All in integers.
Angle large_angle(const Expr& a) {
  constexpr uint32_t kTwoOverPi[] = {0,          0xa2f9836e, 0x4e441529, 0xfc2757d1,
                                     0xf534ddc0, 0xdb629599, 0x3c439041, 0xfe5163ab};
  const Expr bits = bits_of(a);
  const Expr first = (bits >> 23) - word(127 + 23 - 30);  // the bit of weight 2
  const Expr index = first >> 5, shift = first & word(31);
  const Expr m = (bits & word(0x7fffff)) | word(0x800000);
  const auto window = [&](int at) {
    Expr chosen = word(kTwoOverPi[4 + at]);
    for (int i = 3; i >= 0; --i) {
      chosen = select(index == word(static_cast<uint32_t>(i)), word(kTwoOverPi[i + at]), chosen);
    }
    return chosen;
  };
  const auto aligned = [&](int at) {
    return (window(at) << shift) | ((window(at + 1) >> 1) >> (word(31) - shift));
  };
  const auto wide = [](const Expr& x) { return cast<uint64_t>(x); };
  // In units of 2^-62 of a quadrant, modulo 4 quadrants.
  const Expr product = (wide(m * aligned(0)) << 32) + wide(m) * wide(aligned(1)) +
                       ((wide(m) * wide(aligned(2))) >> 32);
  const Expr half = Halide::Internal::make_const(UInt(64), uint64_t{1} << 61);
  const Expr quadrant = (product + half) >> 62;
  const Expr rest = cast<float>(Halide::reinterpret(Halide::Int(64), product - (quadrant << 62)));
  return {cast<uint32_t>(quadrant), rest * (kHalfPi * 0x1p-62f)};
}

Angle split_angle(const Expr& x) {
  const Expr a = abs_f32(x);
  const Expr is_small = lt(a, 65536.0f);
  const Angle small = small_angle(a), large = large_angle(a);
  return {select(is_small, small.quadrant, large.quadrant),
          select(is_small, small.rest, select(lt(a, kInfinity), large.rest, kNaN))};
}

// |r| <= pi / 4
Expr sin_near(const Expr& r) {
  const Expr z = r * r;
  const Expr p = polynomial(z, {-1.9515295891e-4f, 8.3321608736e-3f, -1.6666654611e-1f});
  return fma_f32(p * z, r, r);
}
Expr cos_near(const Expr& r) {
  const Expr z = r * r;
  const Expr p =
      polynomial(z, {2.443315711809948e-5f, -1.388731625493765e-3f, 4.166664568298827e-2f});
  return fma_f32(p * z, z, fma_f32(z, -0.5f, 1.0f));
}

Expr is_even(const Expr& quadrant) { return (quadrant & word(1)) == word(0); }
// In the third and fourth quadrant, and for a negative x.
Expr negated(const Expr& value, const Expr& quadrant) {
  return as_float(bits_of(value) ^ ((quadrant & word(2)) << 30));
}
Expr with_sign_of(const Expr& value, const Expr& x) {
  return as_float(bits_of(value) ^ (bits_of(x) & word(kSignBit)));
}

}  // namespace

Expr sin_f32(const Expr& x) {
  const Angle angle = split_angle(x);
  const Expr value = select(is_even(angle.quadrant), sin_near(angle.rest), cos_near(angle.rest));
  return with_sign_of(negated(value, angle.quadrant), x);
}

Expr cos_f32(const Expr& x) {
  const Angle angle = split_angle(x);
  const Expr value = select(is_even(angle.quadrant), cos_near(angle.rest), sin_near(angle.rest));
  return negated(value, angle.quadrant + word(1));
}

Expr tan_f32(const Expr& x) {
  const Angle angle = split_angle(x);
  const Expr s = sin_near(angle.rest), c = cos_near(angle.rest);
  const Expr is_tangent = is_even(angle.quadrant);  // else minus the cotangent
  return with_sign_of(select(is_tangent, s, -1.0f * c) / select(is_tangent, c, s), x);
}

namespace {

// 0 <= t <= 1
Expr atan_near(const Expr& t) {
  const Expr z = t * t;
  const Expr p =
      polynomial(z, {-0.00242406976f, 0.0136580913f, -0.0361197333f, 0.0627157294f, -0.0866714749f,
                     0.11036454f, -0.142789179f, 0.199997569f, -0.333333319f});
  return fma_f32(p * z, t, t);
}
Expr from_half_pi(const Expr& angle) { return (kHalfPi - angle) + kHalfPiLow; }

}  // namespace

Expr atan_f32(const Expr& x) {
  const Expr a = abs_f32(x);
  const Expr is_steep = lt(1.0f, a);
  const Expr near = atan_near(select(is_steep, 1.0f / a, a));
  return copysign_f32(select(is_steep, from_half_pi(near), near), x);
}

Expr atan2_f32(const Expr& y, const Expr& x) {
  const Expr ax = abs_f32(x), ay = abs_f32(y);
  const Expr is_steep = lt(ax, ay);
  const Expr low = select(is_steep, ax, ay), high = select(is_steep, ay, ax);
  // Two zeros or two infinities have no quotient.
  const Expr quotient = select(eq(low, high), select(eq(low, 0.0f), 0.0f, 1.0f), low / high);
  const Expr near = atan_near(quotient);
  const Expr right = select(is_steep, from_half_pi(near), near);
  const Expr angle =
      select(bits_of(x) >= word(kSignBit), (2 * kHalfPi - right) + 2 * kHalfPiLow, right);
  return select(ne(x, x) || ne(y, y), kNaN, copysign_f32(angle, y));
}

Expr asin_f32(const Expr& x) { return atan2_f32(x, sqrt((1.0f - x) * (1.0f + x))); }
Expr acos_f32(const Expr& x) { return atan2_f32(sqrt((1.0f - x) * (1.0f + x)), x); }

// x P(x^2) / Q(x^2), a minimax quotient (relative error 2e-8) up to where erf rounds to 1.
Expr erf_f32(const Expr& x) {
  const Expr a = at_most(abs_f32(x), 3.925f);
  const Expr z = a * a;
  const Expr p = polynomial(
      z, {2.04195168e-6f, 2.84807e-4f, 3.779607e-3f, 5.27902903e-2f, 0.190783981f, 1.12837915f});
  const Expr q = polynomial(
      z, {3.80037882e-5f, 1.16520893e-3f, 1.49974403e-2f, 0.114257568f, 0.502410621f, 1.0f});
  return copysign_f32(a * p / q, x);
}

// exp(-x^2) R(x): R (1 + 2 x) is a polynomial in (x - 2) / (x + 2) to 2e-8. The square is kept to
// twice the precision, because the exponential multiplies its error by up to 100.
Expr erfc_f32(const Expr& x) {
  const Expr a = at_most(abs_f32(x), 10.1f);
  const Expr square = a * a;
  const Expr lost = fma_f32(a, a, -1.0f * square);
  const Expr u = (a - 2.0f) / (a + 2.0f);
  const Expr p =
      polynomial(u, {-4.0057955e-4f, -1.22993076e-3f, 1.31352528e-3f, 8.63168436e-3f, -8.059876e-3f,
                     -5.42042995e-2f, 0.164055347f, -0.166031425f, -9.27639809e-2f, 1.27697839f});
  const Power power = split_exp(-1.0f * square);
  const Expr near = fma_f32(-1.0f * lost, power.value, power.value);
  const Expr value = scaled(near * (p / (1.0f + a + a)), power.exponent);
  return select(lt(x, 0.0f), 2.0f - value, value);
}

Expr gelu_f32(const Expr& x) {
  const Expr half = 0.5f * at_least(x, -20.0f);  // where it is 0 already
  return fma_f32(half, erf_f32(x * 0.707106781186547524f), half);
}

Expr gelu_slope_f32(const Expr& x) {
  const Expr near = at_least(at_most(x, 20.0f), -20.0f);  // inf exp(-inf) would be NaN
  const Expr density = 0.398942280401432678f * exp_f32(near * near * -0.5f);
  return fma_f32(near, density, fma_f32(0.5f, erf_f32(x * 0.707106781186547524f), 0.5f));
}

namespace {

constexpr float kSqrtTwoOverPi = 0.797884560802865356f, kCubic = 0.044715f;

// 1/2 (1 + tanh(u)) = sigmoid(2 u), u = sqrt(2 / pi) (x + 0.044715 x^3)
Expr gelu_argument(const Expr& x) {
  return x * fma_f32(x * x, 2 * kSqrtTwoOverPi * kCubic, 2 * kSqrtTwoOverPi);
}

}  // namespace

// Below -9.5 the gate is 0 to f32. There nothing may become a denormal on the way: each costs as
// much as the rest of the vector many times over.
Expr gelu_tanh_f32(const Expr& x) {
  const Expr factor = select(lt(x, -9.5f), 0.0f, x);
  return times_sigmoid_f32(factor, gelu_argument(at_least(x, -9.5f)));
}

Expr gelu_tanh_slope_f32(const Expr& x) {
  const Expr near = at_least(at_most(x, 20.0f), -20.0f);
  const Expr gate = sigmoid_f32(gelu_argument(near));
  const Expr slope = fma_f32(near * near, 6 * kSqrtTwoOverPi * kCubic, 2 * kSqrtTwoOverPi);
  return fma_f32(near * (gate * (1.0f - gate)), slope, gate);
}

}  // namespace ballast::kernels
