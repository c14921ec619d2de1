// The gradients of softmax ops. Names: g is the output's cotangent, y the output, x the first
// input.
#include "frontend/ops.h"
#include "frontend/vjp_rules.h"

namespace ballast {

using namespace vjp_rules;

namespace {

std::vector<Tensor> softmax_cross_entropy(const VjpArgs& args) {
  return {ops::softmax_cross_entropy_grad(g(args), args.inputs[0], args.inputs[1]), {}};
}

// The op is dloss_b (p - onehot), p = softmax(logits).
std::vector<Tensor> softmax_cross_entropy_grad(const VjpArgs& args) {
  const Tensor& dloss = args.inputs[0];
  const Tensor& logits = args.inputs[1];
  Tensor difference = ops::softmax_cross_entropy_grad(Tensor::ones(dloss.shape(), dloss.dtype()),
                                                      logits, args.inputs[2]);
  Tensor p = ops::softmax(logits);
  Tensor column = ops::reshape(dloss, {dloss.shape()[0], 1});
  Tensor dlogits = column * (p * (g(args) - ops::reduce_sum(g(args) * p, {1}, true)));
  return {ops::reduce_sum(g(args) * difference, {1}), dlogits, {}};
}

}  // namespace

std::vector<Primitive> softmax_primitives() {
  return {
      {"softmax_cross_entropy", softmax_cross_entropy},
      {"softmax_cross_entropy_grad", softmax_cross_entropy_grad},
  };
}

}  // namespace ballast
