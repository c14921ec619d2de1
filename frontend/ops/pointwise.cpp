#include "frontend/ops/pointwise.h"

#include "frontend/ops/call.h"
#include "frontend/ops/reduce.h"

namespace ballast {

Tensor operator+(const Operand& a, const Operand& b) { return ops::add(a, b); }
Tensor operator-(const Operand& a, const Operand& b) { return ops::sub(a, b); }
Tensor operator*(const Operand& a, const Operand& b) { return ops::mul(a, b); }
Tensor operator/(const Operand& a, const Operand& b) { return ops::div(a, b); }
Tensor operator-(const Operand& x) { return ops::neg(x); }

}  // namespace ballast

namespace ballast::ops {

namespace {

bool is_bool(const Operand& x) { return x.given() && x.given()->dtype() == DType::kBool; }
bool are_bools(const Operand& a, const Operand& b) {
  return (is_bool(a) || a.is_number()) && (is_bool(b) || b.is_number()) &&
         common_dtype(a, b) == DType::kBool;
}

Tensor logical(const char* name, const Operand& a, const Operand& b) {
  CallScope scope(a.where());
  return binary(name, truth(a), truth(b));
}

}  // namespace

Tensor truth(const Operand& x) {
  if (is_bool(x) || x.is_number()) return x.as(DType::kBool);
  return binary("not_equal", x, Operand(0, x.where()));
}

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
Tensor exp2(const Operand& x) { return unary("exp2", x); }
Tensor expm1(const Operand& x) { return unary("expm1", x); }
Tensor log2(const Operand& x) { return unary("log2", x); }
Tensor log10(const Operand& x) { return unary("log10", x); }
Tensor log1p(const Operand& x) { return unary("log1p", x); }
Tensor sin(const Operand& x) { return unary("sin", x); }
Tensor cos(const Operand& x) { return unary("cos", x); }
Tensor tan(const Operand& x) { return unary("tan", x); }
Tensor asin(const Operand& x) { return unary("asin", x); }
Tensor acos(const Operand& x) { return unary("acos", x); }
Tensor atan(const Operand& x) { return unary("atan", x); }
Tensor sinh(const Operand& x) { return unary("sinh", x); }
Tensor cosh(const Operand& x) { return unary("cosh", x); }
Tensor asinh(const Operand& x) { return unary("asinh", x); }
Tensor acosh(const Operand& x) { return unary("acosh", x); }
Tensor atanh(const Operand& x) { return unary("atanh", x); }
Tensor erf(const Operand& x) { return unary("erf", x); }
Tensor erfc(const Operand& x) { return unary("erfc", x); }
Tensor ceil(const Operand& x) { return unary("ceil", x); }
Tensor round(const Operand& x) { return unary("round", x); }
Tensor trunc(const Operand& x) { return unary("trunc", x); }
Tensor isnan(const Operand& x) { return unary("isnan", x); }
Tensor isinf(const Operand& x) { return unary("isinf", x); }
Tensor isfinite(const Operand& x) { return unary("isfinite", x); }
Tensor rint(const Operand& x) { return unary("round", x); }
Tensor bitwise_not(const Operand& x) {
  return unary(is_bool(x) ? "logical_not" : "bitwise_not", x);
}
Tensor add(const Operand& a, const Operand& b) { return binary("add", a, b); }
Tensor sub(const Operand& a, const Operand& b) { return binary("sub", a, b); }
Tensor mul(const Operand& a, const Operand& b) { return binary("mul", a, b); }
// Of integers a true division: f32, as with numpy a float.
Tensor div(const Operand& a, const Operand& b) {
  CallScope scope(a.where());
  const auto is_whole = [](const Operand& x) {
    return x.is_number() || !is_float(x.given()->dtype());
  };
  if (!is_whole(a) || !is_whole(b)) return binary("div", a, b);
  const auto real = [](const Operand& x) {
    return x.is_number() ? x : Operand(cast(x, DType::kF32));
  };
  return binary("div", real(a), real(b));
}
Tensor maximum(const Operand& a, const Operand& b) { return binary("maximum", a, b); }
Tensor minimum(const Operand& a, const Operand& b) { return binary("minimum", a, b); }
Tensor pow(const Operand& a, const Operand& b) { return binary("pow", a, b); }
Tensor atan2(const Operand& y, const Operand& x) { return binary("atan2", y, x); }
Tensor floor_div(const Operand& a, const Operand& b) { return binary("floor_div", a, b); }
Tensor floor_mod(const Operand& a, const Operand& b) { return binary("floor_mod", a, b); }
Tensor bitwise_and(const Operand& a, const Operand& b) {
  return binary(are_bools(a, b) ? "logical_and" : "bitwise_and", a, b);
}
Tensor bitwise_or(const Operand& a, const Operand& b) {
  return binary(are_bools(a, b) ? "logical_or" : "bitwise_or", a, b);
}
Tensor bitwise_xor(const Operand& a, const Operand& b) {
  return binary(are_bools(a, b) ? "logical_xor" : "bitwise_xor", a, b);
}
Tensor left_shift(const Operand& a, const Operand& b) { return binary("left_shift", a, b); }
Tensor right_shift(const Operand& a, const Operand& b) { return binary("right_shift", a, b); }
Tensor relu_grad(const Operand& dy, const Operand& y) { return binary("relu_grad", dy, y); }

Tensor equal(const Operand& a, const Operand& b) {
  if (!are_bools(a, b)) return binary("equal", a, b);
  CallScope scope(a.where());
  return logical_not(logical_xor(a, b));
}
Tensor not_equal(const Operand& a, const Operand& b) {
  return binary(are_bools(a, b) ? "logical_xor" : "not_equal", a, b);
}
Tensor less(const Operand& a, const Operand& b) { return binary("less", a, b); }
Tensor less_equal(const Operand& a, const Operand& b) { return binary("less_equal", a, b); }
Tensor greater(const Operand& a, const Operand& b) { return binary("greater", a, b); }
Tensor greater_equal(const Operand& a, const Operand& b) { return binary("greater_equal", a, b); }
Tensor logical_and(const Operand& a, const Operand& b) { return logical("logical_and", a, b); }
Tensor logical_or(const Operand& a, const Operand& b) { return logical("logical_or", a, b); }
Tensor logical_xor(const Operand& a, const Operand& b) { return logical("logical_xor", a, b); }
Tensor logical_not(const Operand& x) {
  CallScope scope(x.where());
  return unary("logical_not", truth(x));
}

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

Tensor all_finite(const Operand& x) {
  CallScope scope(x.where());
  return reduce_all(isfinite(x));
}

Tensor clip(const Operand& x, const Operand& low, const Operand& high) {
  CallScope scope(x.where());
  return minimum(maximum(x, low), high);
}

Tensor gelu(const Operand& x, Gelu form) {
  return unary(form == Gelu::kTanh ? "gelu_tanh" : "gelu", x);
}

Tensor gelu_grad(const Operand& dy, const Operand& x, Gelu form) {
  return binary(form == Gelu::kTanh ? "gelu_tanh_grad" : "gelu_grad", dy, x);
}

Tensor silu(const Operand& x) { return unary("silu", x); }
Tensor softplus(const Operand& x) { return unary("softplus", x); }

Tensor mish(const Operand& x) {
  CallScope scope(x.where());
  return x.tensor() * tanh(softplus(x));
}

// The exponential of what is not positive: the other branch must not overflow.
Tensor elu(const Operand& x, double alpha) {
  CallScope scope(x.where());
  Tensor tensor = x.tensor();
  return select(greater(tensor, 0.0f), tensor, alpha * expm1(minimum(tensor, 0.0f)));
}

Tensor leaky_relu(const Operand& x, double negative_slope) {
  CallScope scope(x.where());
  Tensor tensor = x.tensor();
  return select(greater(tensor, 0.0f), tensor, negative_slope * tensor);
}

Tensor relu6(const Operand& x) {
  CallScope scope(x.where());
  return minimum(relu(x), 6.0f);
}

Tensor hard_sigmoid(const Operand& x) {
  CallScope scope(x.where());
  return relu6(x.tensor() + 3.0f) / 6.0f;
}

Tensor hard_swish(const Operand& x) {
  CallScope scope(x.where());
  return x.tensor() * hard_sigmoid(x);
}

}  // namespace ballast::ops
