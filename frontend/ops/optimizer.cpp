#include "frontend/ops/optimizer.h"

#include "frontend/ops/call.h"

namespace ballast::ops {

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

}  // namespace ballast::ops
