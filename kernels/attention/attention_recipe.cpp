#include "kernels/attention/attention_recipe.h"

#include "kernels/pointwise/pointwise_math.h"

namespace ballast::kernels::attention {

using namespace Halide;

Expr fused_multiply_add(const Expr& a, const Expr& b, const Expr& c) {
  return Internal::Call::make(Float(32), "fma", {a, b, c}, Internal::Call::PureExtern);
}

Expr larger(const Expr& a, const Expr& b) { return select(lt(a, b), b, a); }

Expr exp_of_scores(const Expr& x) {
  constexpr float kLowest = -87.3f, kHighest = 88.3f;
  // x = n ln 2 + r: adding 1.5 * 2^23 rounds to a whole number, which the low bits then hold; 127
  // more and they are the exponent of 2^n.
  constexpr float kMagic = 12582912.0f + 127.0f;
  const Expr limited = select(lt(kHighest, x), kHighest, lt(x, kLowest), kLowest, x);
  const Expr shifted = fused_multiply_add(limited, 1.44269504088896341f, kMagic);
  const Expr n = strict_float(shifted - kMagic);
  Expr r = fused_multiply_add(n, -0.693359375f, limited);
  r = fused_multiply_add(n, 2.12194440e-4f, r);
  // 1 + r + r^2 (...), the largest relative error over |r| <= ln 2 / 2 made least: 1.1e-7.
  Expr p = 0.00831239858f;
  for (float c : {0.0418912819f, 0.166671194f, 0.499992238f, 1.0f, 1.0f}) {
    p = fused_multiply_add(p, r, c);
  }
  const Expr power = reinterpret(Float(32), reinterpret(Int(32), shifted) << 23);
  return select(lt(x, kLowest), 0.0f, p * power);
}

Expr finite_or_zero(const Expr& value) { return select(eq(value, -kInfinity), 0.0f, value); }

Expr reduce_lanes(const std::function<Expr(int lane)>& term,
                  Expr (*combine)(const Expr&, const Expr&)) {
  std::vector<Expr> terms;
  for (int lane = 0; lane < kLanes; ++lane) terms.push_back(term(lane));
  while (terms.size() > 1) {
    std::vector<Expr> half;
    for (size_t i = 0; i < terms.size(); i += 2) half.push_back(combine(terms[i], terms[i + 1]));
    terms = half;
  }
  return terms[0];
}

}  // namespace ballast::kernels::attention
