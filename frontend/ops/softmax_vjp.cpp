// The gradients of softmax ops. Names: g is the output's cotangent, y the output, x the first
// input.
#include "frontend/ops/ops.h"
#include "frontend/transforms/vjp_rules.h"
#include "frontend/transforms/vmap_rules.h"

namespace ballast {

using namespace vjp_rules;

namespace {

double smoothing_of(const VjpArgs& args) { return float_attr(args.attrs, "label_smoothing", 0); }
int64_t axis_of(const VjpArgs& args) { return int_attr(args.attrs, "axis"); }

Tensor sum_along(const VjpArgs& args, const Tensor& values) {
  return ops::reduce_sum(values, {axis_of(args)}, /*keep_dims=*/true);
}

std::vector<Tensor> softmax(const VjpArgs& args) {
  return {ops::softmax_grad(g(args), y(args), axis_of(args))};
}

std::vector<Tensor> log_softmax(const VjpArgs& args) {
  return {ops::log_softmax_grad(g(args), y(args), axis_of(args))};
}

// The op is (dy - sum(dy p)) p, with p its second input: linear in dy, and symmetric.
std::vector<Tensor> softmax_grad(const VjpArgs& args) {
  const Tensor& dy = args.inputs[0];
  const Tensor& p = args.inputs[1];
  Tensor dp = g(args) * (dy - sum_along(args, dy * p)) - dy * sum_along(args, g(args) * p);
  return {ops::softmax_grad(g(args), p, axis_of(args)), dp};
}

// The op is dy - exp(l) sum(dy), with l its second input.
std::vector<Tensor> log_softmax_grad(const VjpArgs& args) {
  Tensor weighted = g(args) * ops::exp(args.inputs[1]);
  Tensor total = sum_along(args, args.inputs[0]);
  return {g(args) - sum_along(args, weighted), -(weighted * total)};
}

std::vector<Tensor> softmax_cross_entropy(const VjpArgs& args) {
  return {
      ops::softmax_cross_entropy_grad(g(args), args.inputs[0], args.inputs[1], smoothing_of(args)),
      {}};
}

// The op is dloss_b (p - target), p = softmax(logits).
std::vector<Tensor> softmax_cross_entropy_grad(const VjpArgs& args) {
  const Tensor& dloss = args.inputs[0];
  const Tensor& logits = args.inputs[1];
  Tensor ones = Tensor::ones(dloss.shape(), dloss.dtype());
  Tensor difference =
      ops::softmax_cross_entropy_grad(ones, logits, args.inputs[2], smoothing_of(args));
  Tensor column = ops::reshape(dloss, {dloss.shape()[0], 1});
  Tensor dlogits = column * ops::softmax_grad(g(args), ops::softmax(logits));
  return {ops::reduce_sum(g(args) * difference, {1}), dlogits, {}};
}

}  // namespace

std::vector<Primitive> softmax_primitives() {
  return {
      {"log_softmax", log_softmax, nullptr, vmap_rules::along},
      {"log_softmax_grad", log_softmax_grad, nullptr, vmap_rules::along},
      {"softmax", softmax, nullptr, vmap_rules::along},
      {"softmax_cross_entropy", softmax_cross_entropy, nullptr, vmap_rules::samples},
      {"softmax_cross_entropy_grad", softmax_cross_entropy_grad, nullptr, vmap_rules::samples},
      {"softmax_grad", softmax_grad, nullptr, vmap_rules::along},
  };
}

}  // namespace ballast
