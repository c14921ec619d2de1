#include "frontend/ops.h"
#include "frontend/vjp_rules.h"

namespace ballast::vjp_rules {

namespace {

const Tensor& g(const VjpArgs& args) { return args.cotangents[0]; }
const Tensor& x(const VjpArgs& args) { return args.inputs[0]; }

// The shape of a reduction's result had it kept its dimensions.
Shape kept_shape(const VjpArgs& args) {
  Shape shape = x(args).shape();
  const std::vector<int64_t>& axes = ints_attr(args.attrs, "axes");
  if (axes.empty()) return Shape(shape.size(), 1);
  for (int64_t axis : axes) shape[static_cast<size_t>(axis)] = 1;
  return shape;
}

// A reduction's result or cotangent, repeated over the input's shape.
Tensor spread(const VjpArgs& args, const Tensor& reduced) {
  return ops::broadcast_to(ops::reshape(reduced, kept_shape(args)), x(args).shape());
}

// Leading dimensions are rows like any other.
Tensor as_rows(const Tensor& tensor) {
  Shape shape = tensor.shape();
  int64_t width = shape.back();
  shape.pop_back();
  return ops::reshape(tensor, {TensorType{tensor.dtype(), shape}.elements(), width});
}

// Zero where a second output's cotangent is absent.
Tensor or_zero(const Tensor& cotangent, const Tensor& like) {
  return cotangent.defined() ? cotangent : Tensor::zeros(like.shape(), like.dtype());
}

}  // namespace

std::vector<Tensor> depend(const VjpArgs& args) {
  std::vector<Tensor> gradients(args.inputs.size());
  gradients[0] = g(args);
  return gradients;
}

std::vector<Tensor> broadcast_to(const VjpArgs& args) {
  return {unbroadcast(g(args), x(args).shape())};
}

std::vector<Tensor> reshape(const VjpArgs& args) {
  return {ops::reshape(g(args), x(args).shape())};
}

std::vector<Tensor> transpose(const VjpArgs& args) {
  const std::vector<int64_t>& perm = ints_attr(args.attrs, "perm");
  std::vector<int64_t> inverse(perm.size());
  for (size_t i = 0; i < perm.size(); ++i) {
    inverse[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
  }
  return {ops::transpose(g(args), inverse)};
}

std::vector<Tensor> reduce_sum(const VjpArgs& args) { return {spread(args, g(args))}; }

std::vector<Tensor> reduce_mean(const VjpArgs& args) {
  double count = static_cast<double>(x(args).elements()) /
                 static_cast<double>(std::max<int64_t>(1, args.outputs[0].elements()));
  return {spread(args, g(args) * (1.0 / count))};
}

// Elements that share the extremum share its gradient equally.
std::vector<Tensor> reduce_extremum(const VjpArgs& args) {
  Tensor is_extremum = ops::cast(ops::equal(x(args), spread(args, args.outputs[0])), DType::kF32);
  Tensor count = ops::reduce_sum(is_extremum, ints_attr(args.attrs, "axes"),
                                 int_attr(args.attrs, "keep_dims") != 0);
  return {is_extremum * spread(args, g(args) / count)};
}

// y / x, except that a single zero gets the product of the others, and two zeros nothing. (A second
// derivative is exact where no factor is zero.)
std::vector<Tensor> reduce_prod(const VjpArgs& args) {
  const std::vector<int64_t>& axes = ints_attr(args.attrs, "axes");
  bool keep_dims = int_attr(args.attrs, "keep_dims") != 0;
  Tensor is_zero = ops::equal(x(args), 0.0f);
  Tensor zeros = ops::reduce_sum(ops::cast(is_zero, DType::kF32), axes, keep_dims);
  Tensor nonzero = ops::select(is_zero, 1.0f, x(args));
  Tensor product = ops::reduce_prod(nonzero, axes, keep_dims);
  Tensor others = ops::select(
      is_zero, ops::select(ops::equal(spread(args, zeros), 1.0f), spread(args, product), 0.0f),
      ops::select(ops::equal(spread(args, zeros), 0.0f), spread(args, product) / nonzero, 0.0f));
  return {spread(args, g(args)) * others};
}

std::vector<Tensor> matmul(const VjpArgs& args) {
  bool transpose_a = int_attr(args.attrs, "transpose_a") != 0;
  bool transpose_b = int_attr(args.attrs, "transpose_b") != 0;
  const Tensor& b = args.inputs[1];
  if (transpose_a) {
    const Tensor& a = x(args);
    Tensor da =
        transpose_b ? ops::matmul(b, g(args), true, true) : ops::matmul(b, g(args), false, true);
    Tensor db = transpose_b ? ops::matmul(g(args), a, true, true) : ops::matmul(a, g(args));
    return {da, db};
  }
  Tensor a = as_rows(x(args));
  Tensor rows = as_rows(g(args));
  Tensor da = ops::matmul(rows, b, false, !transpose_b);
  Tensor db = transpose_b ? ops::matmul(rows, a, true, false) : ops::matmul(a, rows, true, false);
  return {ops::reshape(da, x(args).shape()), db};
}

std::vector<Tensor> softmax_cross_entropy(const VjpArgs& args) {
  return {ops::softmax_cross_entropy_grad(g(args), args.inputs[0], args.inputs[1]), {}};
}

// The op is dloss_b (p - onehot), p = softmax(logits).
std::vector<Tensor> softmax_cross_entropy_grad(const VjpArgs& args) {
  const Tensor& dloss = args.inputs[0];
  const Tensor& logits = args.inputs[1];
  Tensor difference =
      ops::softmax_cross_entropy_grad(Tensor::ones(dloss.shape()), logits, args.inputs[2]);
  Tensor p = ops::softmax(logits);
  Tensor column = ops::reshape(dloss, {dloss.shape()[0], 1});
  Tensor dlogits = column * (p * (g(args) - ops::reduce_sum(g(args) * p, {1}, true)));
  return {ops::reduce_sum(g(args) * difference, {1}), dlogits, {}};
}

std::vector<Tensor> apply_gradient_descent(const VjpArgs& args) {
  const Tensor& grad = args.inputs[1];
  const Tensor& lr = args.inputs[2];
  return {g(args), -g(args) * lr, -ops::reduce_sum(g(args) * grad)};
}

// accum' = m accum + grad; param' = param - lr u, where u = accum', or grad + m accum' (Nesterov).
std::vector<Tensor> apply_momentum(const VjpArgs& args) {
  const Tensor& accum = args.inputs[1];
  const Tensor& grad = args.inputs[2];
  const Tensor& lr = args.inputs[3];
  const Tensor& m = args.inputs[4];
  const Tensor& new_accum = args.outputs[1];
  Tensor dparam = or_zero(args.cotangents[0], args.outputs[0]);
  Tensor dnew = or_zero(args.cotangents[1], new_accum);
  Tensor du = -dparam * lr;
  if (int_attr(args.attrs, "use_nesterov") == 0) {
    dnew = dnew + du;
    return {dparam, dnew * m, dnew, -ops::reduce_sum(dparam * new_accum),
            ops::reduce_sum(dnew * accum)};
  }
  dnew = dnew + du * m;
  return {dparam, dnew * m, dnew + du, -ops::reduce_sum(dparam * (grad + m * new_accum)),
          ops::reduce_sum(dnew * accum) + ops::reduce_sum(du * new_accum)};
}

}  // namespace ballast::vjp_rules
