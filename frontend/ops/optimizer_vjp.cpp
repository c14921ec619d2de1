// The gradients of optimizer ops. Names: g is the output's cotangent, y the output, x the first
// input.
#include "frontend/ops.h"
#include "frontend/vjp_rules.h"

namespace ballast {

using namespace vjp_rules;

namespace {

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

}  // namespace

std::vector<Primitive> optimizer_primitives() {
  return {
      {"apply_gradient_descent", apply_gradient_descent},
      {"apply_momentum", apply_momentum},
  };
}

}  // namespace ballast
