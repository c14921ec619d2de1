#include "frontend/ops/pointwise.h"

#include "frontend/ops/call.h"

namespace ballast {

Tensor operator+(const Operand& a, const Operand& b) { return ops::add(a, b); }
Tensor operator-(const Operand& a, const Operand& b) { return ops::sub(a, b); }
Tensor operator*(const Operand& a, const Operand& b) { return ops::mul(a, b); }
Tensor operator/(const Operand& a, const Operand& b) { return ops::div(a, b); }
Tensor operator-(const Operand& x) { return ops::neg(x); }

}  // namespace ballast

namespace ballast::ops {

Tensor neg(const Operand& x) { return unary("neg", x); }
Tensor abs(const Operand& x) { return unary("abs", x); }
Tensor sign(const Operand& x) { return unary("sign", x); }
Tensor exp(const Operand& x) { return unary("exp", x); }
Tensor log(const Operand& x) { return unary("log", x); }
Tensor sqrt(const Operand& x) { return unary("sqrt", x); }
Tensor rsqrt(const Operand& x) { return unary("rsqrt", x); }
Tensor reciprocal(const Operand& x) { return unary("reciprocal", x); }
Tensor tanh(const Operand& x) { return unary("tanh", x); }
Tensor sigmoid(const Operand& x) { return unary("sigmoid", x); }
Tensor relu(const Operand& x) { return unary("relu", x); }
Tensor square(const Operand& x) { return unary("square", x); }
Tensor floor(const Operand& x) { return unary("floor", x); }
Tensor add(const Operand& a, const Operand& b) { return binary("add", a, b); }
Tensor sub(const Operand& a, const Operand& b) { return binary("sub", a, b); }
Tensor mul(const Operand& a, const Operand& b) { return binary("mul", a, b); }
Tensor div(const Operand& a, const Operand& b) { return binary("div", a, b); }
Tensor maximum(const Operand& a, const Operand& b) { return binary("maximum", a, b); }
Tensor minimum(const Operand& a, const Operand& b) { return binary("minimum", a, b); }
Tensor pow(const Operand& a, const Operand& b) { return binary("pow", a, b); }
Tensor relu_grad(const Operand& dy, const Operand& y) { return binary("relu_grad", dy, y); }

Tensor equal(const Operand& a, const Operand& b) { return binary("equal", a, b); }
Tensor not_equal(const Operand& a, const Operand& b) { return binary("not_equal", a, b); }
Tensor less(const Operand& a, const Operand& b) { return binary("less", a, b); }
Tensor less_equal(const Operand& a, const Operand& b) { return binary("less_equal", a, b); }
Tensor greater(const Operand& a, const Operand& b) { return binary("greater", a, b); }
Tensor greater_equal(const Operand& a, const Operand& b) { return binary("greater_equal", a, b); }
Tensor logical_and(const Operand& a, const Operand& b) { return binary("logical_and", a, b); }
Tensor logical_or(const Operand& a, const Operand& b) { return binary("logical_or", a, b); }
Tensor logical_not(const Operand& x) { return unary("logical_not", x); }

Tensor select(const Operand& condition, const Operand& a, const Operand& b) {
  DType dtype = common_dtype(a, b);
  return apply_primitive("select", {condition.as(DType::kBool), a.as(dtype), b.as(dtype)}, {},
                         condition.where())[0];
}

Tensor cast(const Operand& x, DType dtype) {
  Tensor tensor = x.tensor();
  if (tensor.dtype() == dtype) return tensor;
  return apply_primitive("cast", {tensor}, {{"dtype", static_cast<int64_t>(dtype)}}, x.where())[0];
}

Tensor gelu(const Operand& x) {
  CallScope scope(x.where());
  const float kSqrtTwoOverPi = 0.7978845608028654f;
  Tensor tensor = x.tensor();
  Tensor inner = kSqrtTwoOverPi * (tensor + 0.044715f * (tensor * square(tensor)));
  return 0.5f * tensor * (1.0f + tanh(inner));
}

Tensor silu(const Operand& x) {
  CallScope scope(x.where());
  return x.tensor() * sigmoid(x);
}

}  // namespace ballast::ops
