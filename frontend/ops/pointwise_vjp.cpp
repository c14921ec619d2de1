// The gradients of pointwise ops. Names: g is the output's cotangent, y the output, x the first
// input.
#include "frontend/ops.h"
#include "frontend/vjp_rules.h"

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
  return binary(args, g(args) * (b * ops::pow(a, b - 1.0f)), g(args) * (y(args) * log_a));
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
  return {
      {"abs", abs},
      {"add", add},
      {"cast", cast},
      {"div", div},
      {"equal", zero},
      {"exp", exp},
      {"floor", zero},
      {"greater", zero},
      {"greater_equal", zero},
      {"identity", identity},
      {"less", zero},
      {"less_equal", zero},
      {"log", log},
      {"logical_and", zero},
      {"logical_not", zero},
      {"logical_or", zero},
      {"maximum", maximum},
      {"minimum", minimum},
      {"mul", mul},
      {"neg", neg},
      {"not_equal", zero},
      {"pow", pow},
      {"reciprocal", reciprocal},
      {"relu", relu},
      {"relu_grad", relu_grad},
      {"rsqrt", rsqrt},
      {"select", select},
      {"sigmoid", sigmoid},
      {"sign", zero},
      {"sqrt", sqrt},
      {"square", square},
      {"sub", sub},
      {"tanh", tanh},
  };
}

}  // namespace ballast
