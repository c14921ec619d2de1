#include "kernels/attention/attention_recipe.h"

#include "kernels/pointwise/pointwise_math.h"

namespace ballast::kernels::attention {

using namespace Halide;

Expr fused_multiply_add(const Expr& a, const Expr& b, const Expr& c) {
  return Internal::Call::make(Float(32), "fma", {a, b, c}, Internal::Call::PureExtern);
}

Expr larger(const Expr& a, const Expr& b) { return select(lt(a, b), b, a); }

Expr exp2_of_scores(const Expr& x) {
  // Adding 1.5 * 2^23 rounds to a whole number, which the low bits then hold. It is added to the
  // exponent of 2^r: at -127, where r is 0 and 2^r exactly 1, what is left is 0.
  constexpr float kMagic = 12582912.0f;
  const Expr limited = at_least(x, -127.0f);
  const Expr shifted = strict_float(limited + kMagic);
  const Expr r = strict_float(limited - strict_float(shifted - kMagic));
  // The largest relative error over |r| <= 1/2 made least: 1.1e-7.
  Expr p = 0.0013300062f;
  for (float c : {0.00966997819f, 0.0555056164f, 0.240222778f, 0.693147181f, 1.0f}) {
    p = fused_multiply_add(p, r, c);
  }
  return reinterpret(Float(32), reinterpret(Int(32), p) + (reinterpret(Int(32), shifted) << 23));
}

Expr finite_or_zero(const Expr& value) { return select(eq(value, -kInfinity), 0.0f, value); }

Expr reduce_terms(int count, const std::function<Expr(int)>& term,
                  Expr (*combine)(const Expr&, const Expr&)) {
  if (count == 1) return term(0);
  const auto pair = [&](int i) { return combine(term(2 * i), term(2 * i + 1)); };
  return reduce_terms(count / 2, pair, combine);
}

}  // namespace ballast::kernels::attention
