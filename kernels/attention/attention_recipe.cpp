#include "kernels/attention/attention_recipe.h"

#include "kernels/pointwise/pointwise_math.h"

namespace ballast::kernels::attention {

using namespace Halide;

Expr fused_multiply_add(const Expr& a, const Expr& b, const Expr& c) {
  return Internal::Call::make(Float(32), "fma", {a, b, c}, Internal::Call::PureExtern);
}

Expr larger(const Expr& a, const Expr& b) { return select(lt(a, b), b, a); }

Expr finite_or_zero(const Expr& value) { return select(eq(value, -kInfinity), 0.0f, value); }

Expr reduce_terms(int count, const std::function<Expr(int)>& term,
                  Expr (*combine)(const Expr&, const Expr&)) {
  if (count == 1) return term(0);
  const auto pair = [&](int i) { return combine(term(2 * i), term(2 * i + 1)); };
  return reduce_terms(count / 2, pair, combine);
}

}  // namespace ballast::kernels::attention
