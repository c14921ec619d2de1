#include "kernels/softmax/softmax_recipe.h"

#include "kernels/pointwise/pointwise_math.h"

namespace ballast::kernels {

using Halide::Expr;

Expr exp_of_negative(const Expr& x) {
  // x = n ln 2 + r: adding 1.5 2^23 rounds to a whole number, which the low bits then hold; 127
  // more and they are the exponent of 2^n. From the lowest x on that exponent is 0, and so is the
  // result.
  constexpr float kLowest = -88.0f, kRound = 12582912.0f + 127.0f;
  constexpr float kLog2E = 1.44269504f, kLn2 = 0.693147182f;  // kLn2 is right to 2e-9
  const Expr limited = at_least(x, kLowest);
  const Expr shifted = fma_f32(limited, kLog2E, kRound);
  const Expr r = fma_f32(shifted - kRound, -kLn2, limited);
  // 1 + r + r^2 (...), the largest relative error over |r| <= ln 2 / 2 made least: 1.1e-7.
  Expr p = 0.00831239858f;
  for (float c : {0.0418912819f, 0.166671194f, 0.499992238f, 1.0f, 1.0f}) p = fma_f32(p, r, c);
  const Expr power = reinterpret(Halide::UInt(32), shifted) << 23;
  return p * reinterpret(Halide::Float(32), power);
}

}  // namespace ballast::kernels
