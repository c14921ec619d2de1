#include "kernels/pointwise/pointwise_math.h"

#include <cmath>
#include <initializer_list>
#include <limits>

using Halide::cast;
using Halide::Expr;
using Halide::Float;
using Halide::Int;
using Halide::reinterpret;
using Halide::select;

namespace ballast::kernels {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
// ln 2 in two parts: the first has trailing zeros, so that its product with an exponent is exact.
constexpr float kLn2High = 0.693359375f;
constexpr float kLn2Low = -2.12194440e-4f;

Expr polynomial(const Expr& x, std::initializer_list<float> coefficients) {
  Expr sum;
  for (float c : coefficients) sum = sum.defined() ? sum * x + c : Expr(c);
  return sum;
}

Expr power_of_two(const Expr& n) { return reinterpret(Float(32), (n + 127) << 23); }

// OpenCL's relational functions give 1 for a scalar and -1 per lane of a vector.
Expr relation(const char* function, const Expr& a, const Expr& b) {
  using Halide::Internal::Call;
  return Call::make(Int(32), function, {a, b}, Call::PureExtern) != 0;
}

}  // namespace

Expr lt(const Expr& a, const Expr& b) {
  return a.type().is_float() ? relation("isless", a, b) : a < b;
}
Expr le(const Expr& a, const Expr& b) {
  return a.type().is_float() ? relation("islessequal", a, b) : a <= b;
}
Expr eq(const Expr& a, const Expr& b) {
  return a.type().is_float() ? relation("isequal", a, b) : a == b;
}
Expr ne(const Expr& a, const Expr& b) {
  return a.type().is_float() ? relation("isnotequal", a, b) : a != b;
}

// exp(x) = 2^n exp(r), |r| <= ln 2 / 2; Cephes' polynomial. The scale is applied in two steps, so
// that results overflow to infinity and underflow through the denormals as they should.
Expr exp_f32(const Expr& x) {
  const Expr limited = select(lt(89.0f, x), 89.0f, lt(x, -104.0f), -104.0f, x);
  const Expr whole = Halide::floor(limited * 1.44269504088896341f + 0.5f);
  const Expr r = (limited - whole * kLn2High) - whole * kLn2Low;
  const Expr p = polynomial(r, {1.9875691500e-4f, 1.3981999507e-3f, 8.3334519073e-3f,
                                4.1665795894e-2f, 1.6666665459e-1f, 5.0000001201e-1f});
  const Expr y = p * (r * r) + r + 1.0f;
  const Expr n = cast<int32_t>(select(eq(x, x), whole, 0.0f));  // converting a NaN is undefined
  const Expr half = n >> 1;
  return y * power_of_two(half) * power_of_two(n - half);
}

// log(x) = e ln 2 + log(m), m in [sqrt(1/2), sqrt(2)); Cephes' polynomial.
Expr log_f32(const Expr& x) {
  const Expr is_small = lt(x, 1.17549435e-38f);  // denormals are scaled up by 2^23
  const Expr bits = reinterpret(Int(32), select(is_small, x * 8388608.0f, x));
  const Expr e = (bits >> 23) - select(is_small, 126 + 23, 126);
  const Expr fraction = reinterpret(Float(32), (bits & 0x007fffff) | 0x3f000000);
  const Expr is_low = lt(fraction, 0.707106781186547524f);
  const Expr exponent = cast<float>(select(is_low, e - 1, e));
  const Expr m = select(is_low, fraction + fraction, fraction) - 1.0f;
  const Expr z = m * m;
  const Expr p = polynomial(m, {7.0376836292e-2f, -1.1514610310e-1f, 1.1676998740e-1f,
                                -1.2420140846e-1f, 1.4249322787e-1f, -1.6668057665e-1f,
                                2.0000714765e-1f, -2.4999993993e-1f, 3.3333331174e-1f});
  const Expr tail = (p * m * z + exponent * kLn2Low) - 0.5f * z;
  const Expr finite = (m + tail) + exponent * kLn2High;
  return select(lt(0.0f, x), select(eq(x, kInfinity), x, finite), eq(x, 0.0f), -kInfinity, kNaN);
}

// Near zero an odd polynomial (Cephes), elsewhere through exp(2 |x|).
Expr tanh_f32(const Expr& x) {
  const Expr magnitude = Halide::abs(x);
  const Expr z = x * x;
  const Expr p = polynomial(z, {-5.70498872745e-3f, 2.06390887954e-2f, -5.37397155531e-2f,
                                1.33314422036e-1f, -3.33332819422e-1f});
  const Expr near = p * z * x + x;
  const Expr far = 1.0f - 2.0f / (exp_f32(magnitude + magnitude) + 1.0f);
  return select(lt(magnitude, 0.625f), near, lt(x, 0.0f), -1.0f * far, far);
}

// The exponential of -|x| never overflows, so that small results keep their precision.
Expr sigmoid_f32(const Expr& x) {
  const Expr e = exp_f32(-1.0f * Halide::abs(x));
  return select(lt(x, 0.0f), e, 1.0f) / (1.0f + e);
}

Expr convert(const Halide::Type& type, const Expr& x) {
  if (type.is_bool()) return x.type().is_bool() ? x : ne(x, Halide::Internal::make_zero(x.type()));
  if (!x.type().is_float() || type.is_float()) return cast(type, x);
  // Out of range the conversion is undefined, so it gets a number in range there.
  const bool is_byte = type == Halide::UInt(8);
  const float low = is_byte ? 0.0f : std::ldexp(-1.0f, type.bits() - 1);
  const float end = is_byte ? 256.0f : std::ldexp(1.0f, type.bits() - 1);
  const Expr is_inside = lt(x, end) && le(low, x);
  const Expr whole = cast(is_byte ? Int(32) : type, select(is_inside, x, 0.0f));
  return select(is_inside, cast(type, whole), le(end, x), type.max(), lt(x, low), type.min(),
                Halide::Internal::make_zero(type));
}

}  // namespace ballast::kernels
