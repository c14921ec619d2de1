#include "frontend/ops.h"

#include "frontend/trace.h"

#include <algorithm>
#include <cmath>

namespace ballast {

Tensor operator+(const Operand& a, const Operand& b) { return ops::add(a, b); }
Tensor operator-(const Operand& a, const Operand& b) { return ops::sub(a, b); }
Tensor operator*(const Operand& a, const Operand& b) { return ops::mul(a, b); }
Tensor operator/(const Operand& a, const Operand& b) { return ops::div(a, b); }
Tensor operator-(const Operand& x) { return ops::neg(x); }

Tensor depend_on(const Operand& x, const std::vector<Tensor>& deps) {
  std::vector<Tensor> inputs{x.tensor()};
  inputs.insert(inputs.end(), deps.begin(), deps.end());
  return apply_primitive("depend", inputs, {}, x.where())[0];
}

Tensor stop_gradient(const Operand& x) {
  return apply_primitive("stop_gradient", {x.tensor()}, {}, x.where())[0];
}

namespace ops {

namespace {

Tensor unary(const char* name, const Operand& x, const Attrs& attrs = {}) {
  return apply_primitive(name, {x.tensor()}, attrs, x.where())[0];
}

// The dtype that numbers take beside these operands.
DType common_dtype(const Operand& a, const Operand& b) {
  if (!a.is_number()) return a.tensor().dtype();
  return b.is_number() ? DType::kF32 : b.tensor().dtype();
}

Tensor binary(const char* name, const Operand& a, const Operand& b) {
  DType dtype = common_dtype(a, b);
  return apply_primitive(name, {a.as(dtype), b.as(dtype)}, {}, a.where())[0];
}

// Negative axes count from the end; what is out of range is left to the op to refuse.
int64_t from_start(int64_t axis, int64_t rank) { return axis < 0 ? axis + rank : axis; }

Tensor reduce(const char* name, const Operand& x, const Axes& axes, bool keep_dims) {
  Tensor tensor = x.tensor();
  Axes sorted;
  for (int64_t axis : axes) sorted.push_back(from_start(axis, tensor.rank()));
  std::sort(sorted.begin(), sorted.end());
  return apply_primitive(name, {tensor}, {{"axes", sorted}, {"keep_dims", int64_t{keep_dims}}},
                         x.where())[0];
}

Tensor arg_reduce(const char* name, const Operand& x, int64_t axis) {
  Tensor tensor = x.tensor();
  return apply_primitive(name, {tensor}, {{"axis", from_start(axis, tensor.rank())}}, x.where())[0];
}

}  // namespace

std::vector<Tensor> call(const std::string& name, const std::vector<Tensor>& inputs,
                         const Attrs& attrs, Where where) {
  return apply_primitive(name, inputs, attrs, where);
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

Tensor broadcast_to(const Operand& x, const Shape& shape) {
  return unary("broadcast_to", x, {{"shape", shape}});
}

Tensor reshape(const Operand& x, Shape shape) {
  Tensor tensor = x.tensor();
  auto open = std::find(shape.begin(), shape.end(), -1);
  if (open != shape.end()) {
    *open = 1;
    int64_t rest = TensorType{tensor.dtype(), shape}.elements();
    // Left as -1 where nothing fits, for the op to refuse.
    *open = rest > 0 && tensor.elements() % rest == 0 ? tensor.elements() / rest : -1;
  }
  return apply_primitive("reshape", {tensor}, {{"shape", std::move(shape)}}, x.where())[0];
}

Tensor transpose(const Operand& x, const std::vector<int64_t>& perm) {
  Tensor tensor = x.tensor();
  std::vector<int64_t> order = perm;
  for (int64_t& axis : order) axis = from_start(axis, tensor.rank());
  for (int64_t axis = tensor.rank(); perm.empty() && axis > 0; --axis) order.push_back(axis - 1);
  return apply_primitive("transpose", {tensor}, {{"perm", std::move(order)}}, x.where())[0];
}

Tensor flatten(const Operand& x) {
  Tensor tensor = x.tensor();
  if (tensor.rank() < 1) {
    fail(BALLAST_INVALID_ARGUMENT, "[flatten] the input is {}, expected at least rank 1 (at {})",
         to_string(tensor.type()), to_string(CallScope::resolve(x.where())));
  }
  TensorType row{tensor.dtype(), Shape(tensor.shape().begin() + 1, tensor.shape().end())};
  Shape shape{tensor.shape()[0], row.elements()};
  return apply_primitive("reshape", {tensor}, {{"shape", std::move(shape)}}, x.where())[0];
}

Tensor reduce_sum(const Operand& x, const Axes& axes, bool keep_dims) {
  return reduce("reduce_sum", x, axes, keep_dims);
}
Tensor reduce_mean(const Operand& x, const Axes& axes, bool keep_dims) {
  return reduce("reduce_mean", x, axes, keep_dims);
}
Tensor reduce_max(const Operand& x, const Axes& axes, bool keep_dims) {
  return reduce("reduce_max", x, axes, keep_dims);
}
Tensor reduce_min(const Operand& x, const Axes& axes, bool keep_dims) {
  return reduce("reduce_min", x, axes, keep_dims);
}
Tensor reduce_prod(const Operand& x, const Axes& axes, bool keep_dims) {
  return reduce("reduce_prod", x, axes, keep_dims);
}
Tensor reduce_any(const Operand& x, const Axes& axes, bool keep_dims) {
  return reduce("reduce_any", x, axes, keep_dims);
}
Tensor reduce_all(const Operand& x, const Axes& axes, bool keep_dims) {
  return reduce("reduce_all", x, axes, keep_dims);
}
Tensor argmax(const Operand& x, int64_t axis) { return arg_reduce("argmax", x, axis); }
Tensor argmin(const Operand& x, int64_t axis) { return arg_reduce("argmin", x, axis); }
Tensor sum(const Operand& x, const Axes& axes, bool keep_dims) {
  return reduce_sum(x, axes, keep_dims);
}
Tensor mean(const Operand& x, const Axes& axes, bool keep_dims) {
  return reduce_mean(x, axes, keep_dims);
}

Tensor matmul(const Operand& a, const Operand& b, bool transpose_a, bool transpose_b) {
  return apply_primitive(
      "matmul", {a.tensor(), b.tensor()},
      {{"transpose_a", int64_t{transpose_a}}, {"transpose_b", int64_t{transpose_b}}}, a.where())[0];
}

Tensor softmax(const Operand& x, int64_t axis) {
  CallScope scope(x.where());
  Tensor tensor = x.tensor();
  // The shift cancels out; without it exp would overflow.
  Tensor e = exp(tensor - stop_gradient(reduce_max(tensor, {axis}, true)));
  return e / reduce_sum(e, {axis}, true);
}

Tensor log_softmax(const Operand& x, int64_t axis) {
  CallScope scope(x.where());
  Tensor tensor = x.tensor();
  Tensor shifted = tensor - stop_gradient(reduce_max(tensor, {axis}, true));
  return shifted - log(reduce_sum(exp(shifted), {axis}, true));
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

Tensor softmax_cross_entropy(const Operand& logits, const Operand& labels) {
  return apply_primitive("softmax_cross_entropy", {logits.tensor(), labels.tensor()}, {},
                         logits.where())[0];
}

Tensor softmax_cross_entropy_grad(const Operand& dloss, const Operand& logits,
                                  const Operand& labels) {
  return apply_primitive("softmax_cross_entropy_grad",
                         {dloss.tensor(), logits.tensor(), labels.tensor()}, {}, logits.where())[0];
}

Tensor apply_gradient_descent(const Operand& param, const Operand& grad, const Operand& lr) {
  return apply_primitive("apply_gradient_descent", {param.tensor(), grad.tensor(), lr.tensor()}, {},
                         param.where())[0];
}

std::vector<Tensor> apply_momentum(const Operand& param, const Operand& accum, const Operand& grad,
                                   const Operand& lr, const Operand& momentum, bool use_nesterov) {
  return apply_primitive(
      "apply_momentum",
      {param.tensor(), accum.tensor(), grad.tensor(), lr.tensor(), momentum.tensor()},
      {{"use_nesterov", int64_t{use_nesterov}}}, param.where());
}

}  // namespace ops
}  // namespace ballast
