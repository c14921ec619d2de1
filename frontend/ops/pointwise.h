// Pointwise ops. Arguments broadcast by numpy's rules; numbers stand for scalars.
#pragma once

#include "frontend/tensor/operand.h"

#include <vector>

namespace ballast {

Tensor operator+(const Operand& a, const Operand& b);
Tensor operator-(const Operand& a, const Operand& b);
Tensor operator*(const Operand& a, const Operand& b);
Tensor operator/(const Operand& a, const Operand& b);
Tensor operator-(const Operand& x);

}  // namespace ballast

namespace ballast::ops {

// ---- elementary functions of floats
Tensor exp2(const Operand& x);
Tensor expm1(const Operand& x);  // exp(x) - 1
Tensor log2(const Operand& x);
Tensor log10(const Operand& x);
Tensor log1p(const Operand& x);  // log(1 + x)
Tensor sin(const Operand& x);
Tensor cos(const Operand& x);
Tensor tan(const Operand& x);
Tensor asin(const Operand& x);
Tensor acos(const Operand& x);
Tensor atan(const Operand& x);
Tensor atan2(const Operand& y, const Operand& x);  // the angle of the point (x, y)
Tensor sinh(const Operand& x);
Tensor cosh(const Operand& x);
Tensor asinh(const Operand& x);
Tensor acosh(const Operand& x);
Tensor atanh(const Operand& x);
Tensor erf(const Operand& x);
Tensor erfc(const Operand& x);  // 1 - erf(x)
Tensor ceil(const Operand& x);
Tensor round(const Operand& x);  // halves to the even neighbour
Tensor rint(const Operand& x);   // the same
Tensor trunc(const Operand& x);  // toward zero
Tensor isnan(const Operand& x);
Tensor isinf(const Operand& x);
Tensor isfinite(const Operand& x);
Tensor all_finite(const Operand& x);  // bool scalar: no NaN and no infinity among the elements

// ---- floats and integers
Tensor neg(const Operand& x);
Tensor abs(const Operand& x);
Tensor sign(const Operand& x);
Tensor exp(const Operand& x);
Tensor log(const Operand& x);
Tensor sqrt(const Operand& x);
Tensor rsqrt(const Operand& x);       // 1 / sqrt(x)
Tensor reciprocal(const Operand& x);  // 1 / x
Tensor tanh(const Operand& x);
Tensor sigmoid(const Operand& x);
Tensor relu(const Operand& x);  // max(x, 0)
Tensor square(const Operand& x);
Tensor floor(const Operand& x);
Tensor add(const Operand& a, const Operand& b);
Tensor sub(const Operand& a, const Operand& b);
Tensor mul(const Operand& a, const Operand& b);
Tensor div(const Operand& a, const Operand& b);  // of integers f32
Tensor maximum(const Operand& a, const Operand& b);
Tensor minimum(const Operand& a, const Operand& b);
Tensor pow(const Operand& a, const Operand& b);
Tensor relu_grad(const Operand& dy, const Operand& y);  // dy where y > 0, else 0
// numpy's: rounds down; the remainder has the sign of b. An integer by 0 gives 0.
Tensor floor_div(const Operand& a, const Operand& b);
Tensor floor_mod(const Operand& a, const Operand& b);
// max(low, min(x, high)); a NaN stays.
Tensor clip(const Operand& x, const Operand& low, const Operand& high);

// ---- integers; bool ones are combined as truth values
Tensor bitwise_and(const Operand& a, const Operand& b);
Tensor bitwise_or(const Operand& a, const Operand& b);
Tensor bitwise_xor(const Operand& a, const Operand& b);
Tensor bitwise_not(const Operand& x);
Tensor left_shift(const Operand& a, const Operand& b);
Tensor right_shift(const Operand& a, const Operand& b);  // keeps the sign

// ---- comparisons and logic, bool
Tensor truth(const Operand& x);  // bool as it is, of numbers what is not 0
Tensor equal(const Operand& a, const Operand& b);
Tensor not_equal(const Operand& a, const Operand& b);
Tensor less(const Operand& a, const Operand& b);
Tensor less_equal(const Operand& a, const Operand& b);
Tensor greater(const Operand& a, const Operand& b);
Tensor greater_equal(const Operand& a, const Operand& b);
// Of numbers their truth.
Tensor logical_and(const Operand& a, const Operand& b);
Tensor logical_or(const Operand& a, const Operand& b);
Tensor logical_xor(const Operand& a, const Operand& b);
Tensor logical_not(const Operand& x);
Tensor select(const Operand& condition, const Operand& a,
              const Operand& b);  // a where true, else b
Tensor cast(const Operand& x, DType dtype);

// ---- activations
enum class Gelu { kExact, kTanh };  // x Phi(x), or Phi by a tanh
Tensor gelu(const Operand& x, Gelu form = Gelu::kTanh);
Tensor gelu_grad(const Operand& dy, const Operand& x, Gelu form = Gelu::kTanh);
Tensor silu(const Operand& x);      // x sigmoid(x)
Tensor softplus(const Operand& x);  // log(1 + exp(x))
Tensor mish(const Operand& x);      // x tanh(softplus(x))
Tensor elu(const Operand& x, double alpha = 1);
Tensor leaky_relu(const Operand& x, double negative_slope = 0.01);
Tensor relu6(const Operand& x);         // min(max(x, 0), 6)
Tensor hard_sigmoid(const Operand& x);  // relu6(x + 3) / 6
Tensor hard_swish(const Operand& x);    // x hard_sigmoid(x)

}  // namespace ballast::ops
