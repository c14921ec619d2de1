// Pointwise ops. Arguments broadcast by numpy's rules; numbers stand for scalars.
#pragma once

#include "frontend/operand.h"

#include <vector>

namespace ballast {

Tensor operator+(const Operand& a, const Operand& b);
Tensor operator-(const Operand& a, const Operand& b);
Tensor operator*(const Operand& a, const Operand& b);
Tensor operator/(const Operand& a, const Operand& b);
Tensor operator-(const Operand& x);

}  // namespace ballast

namespace ballast::ops {

// ---- pointwise, f32
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
Tensor div(const Operand& a, const Operand& b);
Tensor maximum(const Operand& a, const Operand& b);
Tensor minimum(const Operand& a, const Operand& b);
Tensor pow(const Operand& a, const Operand& b);
Tensor relu_grad(const Operand& dy, const Operand& y);  // dy where y > 0, else 0

// ---- comparisons and logic, bool
Tensor equal(const Operand& a, const Operand& b);
Tensor not_equal(const Operand& a, const Operand& b);
Tensor less(const Operand& a, const Operand& b);
Tensor less_equal(const Operand& a, const Operand& b);
Tensor greater(const Operand& a, const Operand& b);
Tensor greater_equal(const Operand& a, const Operand& b);
Tensor logical_and(const Operand& a, const Operand& b);
Tensor logical_or(const Operand& a, const Operand& b);
Tensor logical_not(const Operand& x);
Tensor select(const Operand& condition, const Operand& a,
              const Operand& b);  // a where true, else b
Tensor gelu(const Operand& x);    // tanh form
Tensor silu(const Operand& x);    // x sigmoid(x)
Tensor cast(const Operand& x, DType dtype);

}  // namespace ballast::ops
