#include "kernels/pointwise/pointwise_math_internal.h"

#include <cmath>

using Halide::cast;
using Halide::Expr;
using Halide::Float;
using Halide::Int;
using Halide::reinterpret;
using Halide::select;
using Halide::UInt;

namespace ballast::kernels {

using Halide::Internal::Call;

namespace {

// OpenCL's relational functions give 1 for a scalar and -1 per lane of a vector.
Expr relation(const char* function, const Expr& a, const Expr& b) {
  return Call::make(Int(32), function, {a, b}, Call::PureExtern) != 0;
}

// Exact functions of OpenCL: every device gives the same bits.
Expr exact(const char* function, const std::vector<Expr>& args) {
  return Call::make(Float(32), function, args, Call::PureExtern);
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

Expr rint_f32(const Expr& x) { return exact("rint", {x}); }
Expr trunc_f32(const Expr& x) { return exact("trunc", {x}); }

Expr bits_of(const Expr& x) { return reinterpret(UInt(32), x); }
Expr word(uint32_t bits) { return Halide::Internal::make_const(UInt(32), bits); }
Expr as_float(const Expr& bits) { return reinterpret(Float(32), bits); }
Expr abs_f32(const Expr& x) { return as_float(bits_of(x) & word(kNoSignBit)); }
Expr copysign_f32(const Expr& magnitude, const Expr& sign) {
  return as_float((bits_of(magnitude) & word(kNoSignBit)) | (bits_of(sign) & word(kSignBit)));
}
Expr at_most(const Expr& x, float limit) { return select(lt(limit, x), limit, x); }
Expr at_least(const Expr& x, float limit) { return select(lt(x, limit), limit, x); }

Expr polynomial(const Expr& x, std::initializer_list<float> coefficients) {
  Expr sum;
  for (float c : coefficients) sum = sum.defined() ? fma_f32(sum, x, c) : Expr(c);
  return sum;
}

Expr convert(const Halide::Type& type, const Expr& x) {
  if (type.is_bool()) return x.type().is_bool() ? x : ne(x, Halide::Internal::make_zero(x.type()));
  if (!x.type().is_float() || type.is_float()) return cast(type, x);
  // Out of range the conversion is undefined, so it gets a number in range there.
  const bool is_byte = type == UInt(8);
  const float low = is_byte ? 0.0f : std::ldexp(-1.0f, type.bits() - 1);
  const float end = is_byte ? 256.0f : std::ldexp(1.0f, type.bits() - 1);
  const Expr is_inside = lt(x, end) && le(low, x);
  const Expr whole = cast(is_byte ? Int(32) : type, select(is_inside, x, 0.0f));
  return select(is_inside, cast(type, whole), le(end, x), type.max(), lt(x, low), type.min(),
                Halide::Internal::make_zero(type));
}

namespace {

// Halide's division rounds so that the remainder is not negative.
struct Division {
  Expr quotient, remainder, is_trivial;
};
Division divide(const Expr& a, const Expr& b) {
  const Expr zero = Halide::Internal::make_zero(a.type());
  // Divisors 0 and -1 are left out: the first is undefined, the second overflows.
  const Expr is_trivial = a.type().is_uint() ? b == zero : b == zero || b == -1;
  const Expr divisor = select(is_trivial, Halide::Internal::make_one(a.type()), b);
  return {a / divisor, a % divisor, is_trivial};
}

}  // namespace

Expr floor_mod(const Expr& a, const Expr& b) {
  if (!a.type().is_float()) {
    const Division d = divide(a, b);
    const Expr zero = Halide::Internal::make_zero(a.type());
    const Expr rest = a.type().is_uint()
                          ? d.remainder
                          : select(b < 0 && d.remainder != 0, d.remainder + b, d.remainder);
    return select(d.is_trivial, zero, rest);
  }
  const Expr rest = exact("fmod", {a, b});
  const Expr is_off = ne(rest, 0.0f) && (bits_of(rest) ^ bits_of(b)) >= word(kSignBit);
  return select(is_off, rest + b, eq(rest, 0.0f), copysign_f32(0.0f, b), rest);
}

Expr floor_div(const Expr& a, const Expr& b) {
  if (!a.type().is_float()) {
    const Division d = divide(a, b);
    const Expr zero = Halide::Internal::make_zero(a.type());
    if (a.type().is_uint()) return select(d.is_trivial, zero, d.quotient);
    const Expr floored = select(b < 0 && d.remainder != 0, d.quotient - 1, d.quotient);
    return select(d.is_trivial, select(b == zero, zero, zero - a), floored);
  }
  // a - mod is a multiple of b, so the quotient is whole but for rounding. Where mod is b itself,
  // an infinity, the quotient is just below 0.
  const Expr mod = floor_mod(a, b);
  const Expr is_below = eq(abs_f32(b), INFINITY) && eq(mod, b);
  const Expr whole = select(is_below, -1.0f, rint_f32((a - mod) / b));
  return select(eq(b, 0.0f), a / b, eq(whole, 0.0f), copysign_f32(0.0f, a / b), whole);
}

namespace {

// Halide takes it that signed integers never overflow, and floats are not for this.
bool must_wrap(const Expr& a) { return a.type().is_int(); }
Expr unsigned_of(const Expr& a) { return cast(UInt(a.type().bits()), a); }

}  // namespace

Expr wrapped_add(const Expr& a, const Expr& b) {
  return must_wrap(a) ? cast(a.type(), unsigned_of(a) + unsigned_of(b)) : a + b;
}

Expr wrapped_sub(const Expr& a, const Expr& b) {
  return must_wrap(a) ? cast(a.type(), unsigned_of(a) - unsigned_of(b)) : a - b;
}

Expr wrapped_mul(const Expr& a, const Expr& b) {
  return must_wrap(a) ? cast(a.type(), unsigned_of(a) * unsigned_of(b)) : a * b;
}

Expr power(const Expr& a, const Expr& b) {
  if (a.type().is_float()) return pow_f32(a, b);
  return Call::make(a.type(), "ballast_power", {a, b}, Call::PureExtern);
}

Expr left_shift(const Expr& a, const Expr& b) {
  const Halide::Type bits = UInt(a.type().bits());
  const Expr count = cast(bits, b);
  const Expr is_inside = count < Halide::Internal::make_const(bits, a.type().bits());
  const Expr zero = Halide::Internal::make_zero(bits);
  return cast(a.type(), select(is_inside, cast(bits, a) << select(is_inside, count, zero), zero));
}

Expr right_shift(const Expr& a, const Expr& b) {
  const Halide::Type bits = UInt(a.type().bits());
  const Expr most = Halide::Internal::make_const(bits, a.type().bits() - 1);
  const Expr count = cast(bits, b);
  const Expr is_inside = count <= most;
  const Expr shifted = a >> select(is_inside, count, most);
  return a.type().is_uint() ? select(is_inside, shifted, Halide::Internal::make_zero(a.type()))
                            : shifted;
}

}  // namespace ballast::kernels
