// Optimizer steps.
#pragma once

#include "frontend/operand.h"

#include <vector>

namespace ballast::ops {

// New values; nothing is written in place.
Tensor apply_gradient_descent(const Operand& param, const Operand& grad, const Operand& lr);
// {param, accum}
std::vector<Tensor> apply_momentum(const Operand& param, const Operand& accum, const Operand& grad,
                                   const Operand& lr, const Operand& momentum,
                                   bool use_nesterov = false);

}  // namespace ballast::ops
