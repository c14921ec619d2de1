// The gradients of pointwise ops. Names: g is the output's cotangent, y the output, x the first
// input.
#include "frontend/ops/ops.h"
#include "frontend/transforms/jvp_rules.h"
#include "frontend/transforms/vjp_rules.h"
#include "frontend/transforms/vmap_rules.h"

#include <cmath>

namespace ballast {

using namespace vjp_rules;

namespace {

std::vector<Tensor> binary(const VjpArgs& args, const Tensor& da, const Tensor& db) {
  return {unbroadcast(da, args.inputs[0].shape()), unbroadcast(db, args.inputs[1].shape())};
}

// The gradient goes to a where `takes_a`, else to b.
std::vector<Tensor> choice(const VjpArgs& args, const Tensor& takes_a) {
  return binary(args, ops::select(takes_a, g(args), 0.0f), ops::select(takes_a, 0.0f, g(args)));
}

std::vector<Tensor> identity(const VjpArgs& args) { return {g(args)}; }

std::vector<Tensor> neg(const VjpArgs& args) { return {-g(args)}; }

std::vector<Tensor> abs(const VjpArgs& args) { return {g(args) * ops::sign(x(args))}; }

std::vector<Tensor> exp(const VjpArgs& args) { return {g(args) * y(args)}; }

std::vector<Tensor> log(const VjpArgs& args) { return {g(args) / x(args)}; }

std::vector<Tensor> sqrt(const VjpArgs& args) { return {g(args) * 0.5f / y(args)}; }

std::vector<Tensor> rsqrt(const VjpArgs& args) {
  return {g(args) * -0.5f * (y(args) * ops::square(y(args)))};
}

std::vector<Tensor> reciprocal(const VjpArgs& args) { return {-g(args) * ops::square(y(args))}; }

std::vector<Tensor> tanh(const VjpArgs& args) { return {g(args) * (1.0f - ops::square(y(args)))}; }

std::vector<Tensor> sigmoid(const VjpArgs& args) {
  return {g(args) * (y(args) * (1.0f - y(args)))};
}

std::vector<Tensor> exp2(const VjpArgs& args) { return {g(args) * (std::log(2.0) * y(args))}; }

std::vector<Tensor> expm1(const VjpArgs& args) { return {g(args) * (y(args) + 1.0f)}; }

std::vector<Tensor> log2(const VjpArgs& args) { return {g(args) / (std::log(2.0) * x(args))}; }

std::vector<Tensor> log10(const VjpArgs& args) { return {g(args) / (std::log(10.0) * x(args))}; }

std::vector<Tensor> log1p(const VjpArgs& args) { return {g(args) / (1.0f + x(args))}; }

std::vector<Tensor> sin(const VjpArgs& args) { return {g(args) * ops::cos(x(args))}; }

std::vector<Tensor> cos(const VjpArgs& args) { return {-(g(args) * ops::sin(x(args)))}; }

std::vector<Tensor> tan(const VjpArgs& args) { return {g(args) * (1.0f + ops::square(y(args)))}; }

// (1 - x) (1 + x) keeps its precision near 1.
Tensor one_minus_square(const Tensor& x) { return (1.0f - x) * (1.0f + x); }

std::vector<Tensor> asin(const VjpArgs& args) {
  return {g(args) * ops::rsqrt(one_minus_square(x(args)))};
}

std::vector<Tensor> acos(const VjpArgs& args) {
  return {-(g(args) * ops::rsqrt(one_minus_square(x(args))))};
}

std::vector<Tensor> atan(const VjpArgs& args) { return {g(args) / (1.0f + ops::square(x(args)))}; }

std::vector<Tensor> sinh(const VjpArgs& args) { return {g(args) * ops::cosh(x(args))}; }

std::vector<Tensor> cosh(const VjpArgs& args) { return {g(args) * ops::sinh(x(args))}; }

std::vector<Tensor> asinh(const VjpArgs& args) {
  return {g(args) * ops::rsqrt(1.0f + ops::square(x(args)))};
}

std::vector<Tensor> acosh(const VjpArgs& args) {
  return {g(args) * ops::rsqrt(-one_minus_square(x(args)))};
}

std::vector<Tensor> atanh(const VjpArgs& args) { return {g(args) / one_minus_square(x(args))}; }

const double kTwoOverSqrtPi = 1.1283791670955126;

std::vector<Tensor> erf(const VjpArgs& args) {
  return {g(args) * (kTwoOverSqrtPi * ops::exp(-ops::square(x(args))))};
}

std::vector<Tensor> erfc(const VjpArgs& args) {
  return {g(args) * (-kTwoOverSqrtPi * ops::exp(-ops::square(x(args))))};
}

std::vector<Tensor> softplus(const VjpArgs& args) { return {g(args) * ops::sigmoid(x(args))}; }

// x, except that far out, where a slope has long reached its limit, 0 times infinity cannot arise.
// All of the bounds below is finite in f16.
Tensor within(const Tensor& x, double bound) { return ops::clip(x, -bound, bound); }

std::vector<Tensor> silu(const VjpArgs& args) {
  Tensor s = ops::sigmoid(x(args));
  return {g(args) * (s * (1.0f + within(x(args), 200) * (1.0f - s)))};
}

std::vector<Tensor> gelu(const VjpArgs& args) {
  return {ops::gelu_grad(g(args), x(args), ops::Gelu::kExact)};
}

std::vector<Tensor> gelu_tanh(const VjpArgs& args) {
  return {ops::gelu_grad(g(args), x(args), ops::Gelu::kTanh)};
}

// The second derivative: phi(x) (2 - x^2), phi the normal density.
std::vector<Tensor> gelu_grad(const VjpArgs& args) {
  const Tensor& dy = args.inputs[0];
  const Tensor& at = args.inputs[1];
  const double kDensity = 0.3989422804014327;
  Tensor square = ops::square(within(at, 20));
  Tensor second = kDensity * ops::exp(-0.5 * square) * (2.0f - square);
  return binary(args, ops::gelu_grad(g(args), at, ops::Gelu::kExact), g(args) * dy * second);
}

// With t = tanh(u), u = c (x + a x^3): (1 - t^2) (u' + x / 2 (u'' - 2 t u'^2)).
std::vector<Tensor> gelu_tanh_grad(const VjpArgs& args) {
  const Tensor& dy = args.inputs[0];
  const Tensor& at = args.inputs[1];
  const double c = 0.7978845608028654, a = 0.044715;
  Tensor near = within(at, 20), square = ops::square(near);
  Tensor t = ops::tanh(near * (c + c * a * square));
  Tensor du = c + 3 * c * a * square;
  Tensor bend = 3 * c * a * square - near * (t * ops::square(du));
  return binary(args, ops::gelu_grad(g(args), at, ops::Gelu::kTanh),
                g(args) * dy * ((1.0f - ops::square(t)) * (du + bend)));
}

std::vector<Tensor> atan2(const VjpArgs& args) {
  const Tensor& dy = args.inputs[0];
  const Tensor& dx = args.inputs[1];
  // Scaled so that no square overflows or vanishes; the scale cancels out. At the origin: 0.
  Tensor largest = stop_gradient(ops::maximum(ops::abs(dx), ops::abs(dy)));
  Tensor is_origin = ops::equal(largest, 0.0f);
  Tensor scale = ops::select(is_origin, 1.0f, largest);
  Tensor u = dx / scale, v = dy / scale;
  Tensor radius = ops::select(is_origin, 1.0f, ops::square(u) + ops::square(v));
  Tensor scaled = g(args) / radius / scale;
  return binary(args, scaled * u, -(scaled * v));
}

// a - b floor(a / b); integers have none.
std::vector<Tensor> floor_mod(const VjpArgs& args) {
  if (!is_float(x(args).dtype())) return zero(args);
  return binary(args, g(args), -(g(args) * ops::floor_div(args.inputs[0], args.inputs[1])));
}

std::vector<Tensor> relu(const VjpArgs& args) { return {ops::relu_grad(g(args), y(args))}; }

std::vector<Tensor> square(const VjpArgs& args) { return {g(args) * (2.0f * x(args))}; }

std::vector<Tensor> add(const VjpArgs& args) { return binary(args, g(args), g(args)); }

std::vector<Tensor> sub(const VjpArgs& args) { return binary(args, g(args), -g(args)); }

std::vector<Tensor> mul(const VjpArgs& args) {
  return binary(args, g(args) * args.inputs[1], g(args) * args.inputs[0]);
}

std::vector<Tensor> div(const VjpArgs& args) {
  Tensor da = g(args) / args.inputs[1];
  return binary(args, da, -da * y(args));
}

std::vector<Tensor> maximum(const VjpArgs& args) {
  return choice(args, ops::greater_equal(args.inputs[0], args.inputs[1]));
}

std::vector<Tensor> minimum(const VjpArgs& args) {
  return choice(args, ops::less_equal(args.inputs[0], args.inputs[1]));
}

std::vector<Tensor> pow(const VjpArgs& args) {
  const Tensor& a = args.inputs[0];
  const Tensor& b = args.inputs[1];
  // log(a) exists for a > 0 only; elsewhere the power does not vary smoothly with b.
  Tensor is_positive = ops::greater(a, 0.0f);
  Tensor log_a = ops::log(ops::select(is_positive, a, 1.0f));
  // A power of 0 is flat, also at a = 0, where pow(a, -1) is infinite.
  Tensor is_flat = ops::equal(b, 0.0f);
  Tensor slope = ops::select(is_flat, 0.0f, b * ops::pow(a, ops::select(is_flat, 1.0f, b - 1.0f)));
  return binary(args, g(args) * slope, g(args) * (y(args) * log_a));
}

std::vector<Tensor> relu_grad(const VjpArgs& args) {
  return {unbroadcast(ops::relu_grad(g(args), args.inputs[1]), x(args).shape()), {}};
}

std::vector<Tensor> select(const VjpArgs& args) {
  Tensor da = ops::select(args.inputs[0], g(args), 0.0f);
  Tensor db = ops::select(args.inputs[0], 0.0f, g(args));
  return {{}, unbroadcast(da, args.inputs[1].shape()), unbroadcast(db, args.inputs[2].shape())};
}

std::vector<Tensor> cast(const VjpArgs& args) {
  return {is_float(x(args).dtype()) ? ops::cast(g(args), x(args).dtype()) : Tensor()};
}

}  // namespace

std::vector<Primitive> pointwise_primitives() {
  std::vector<Primitive> rows = {
      {"abs", abs},
      {"acos", acos},
      {"acosh", acosh},
      {"add", add},
      {"asin", asin},
      {"asinh", asinh},
      {"atan", atan},
      {"atan2", atan2},
      {"atanh", atanh},
      {"bitwise_and", zero},
      {"bitwise_not", zero},
      {"bitwise_or", zero},
      {"bitwise_xor", zero},
      {"cast", cast, jvp_rules::multilinear},
      {"ceil", zero},
      {"cos", cos},
      {"cosh", cosh},
      {"div", div},
      {"equal", zero},
      {"erf", erf},
      {"erfc", erfc},
      {"exp", exp},
      {"exp2", exp2},
      {"expm1", expm1},
      {"floor", zero},
      {"floor_div", zero},
      {"floor_mod", floor_mod},
      {"gelu", gelu},
      {"gelu_grad", gelu_grad},
      {"gelu_tanh", gelu_tanh},
      {"gelu_tanh_grad", gelu_tanh_grad},
      {"greater", zero},
      {"greater_equal", zero},
      {"identity", identity, jvp_rules::multilinear},
      {"isfinite", zero},
      {"isinf", zero},
      {"isnan", zero},
      {"left_shift", zero},
      {"less", zero},
      {"less_equal", zero},
      {"log", log},
      {"log10", log10},
      {"log1p", log1p},
      {"log2", log2},
      {"logical_and", zero},
      {"logical_not", zero},
      {"logical_or", zero},
      {"logical_xor", zero},
      {"maximum", maximum},
      {"minimum", minimum},
      {"mul", mul, jvp_rules::multilinear},
      {"neg", neg, jvp_rules::multilinear},
      {"not_equal", zero},
      {"pow", pow},
      {"reciprocal", reciprocal},
      {"relu", relu},
      {"relu_grad", relu_grad},
      {"right_shift", zero},
      {"round", zero},
      {"rsqrt", rsqrt},
      {"select", select},
      {"sigmoid", sigmoid},
      {"sign", zero},
      {"silu", silu},
      {"sin", sin},
      {"sinh", sinh},
      {"softplus", softplus},
      {"sqrt", sqrt},
      {"square", square},
      {"sub", sub},
      {"tan", tan},
      {"tanh", tanh},
      {"trunc", zero},
  };
  for (Primitive& row : rows) row.vmap = vmap_rules::pointwise;
  return rows;
}

}  // namespace ballast
