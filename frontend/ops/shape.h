// Ops that move elements.
#pragma once

#include "frontend/operand.h"

#include <vector>

namespace ballast::ops {

Tensor broadcast_to(const Operand& x, const Shape& shape);
Tensor reshape(const Operand& x, Shape shape);                              // one extent may be -1
Tensor transpose(const Operand& x, const std::vector<int64_t>& perm = {});  // empty: reversed
Tensor flatten(const Operand& x);                                           // [B, ...] -> [B, n]

}  // namespace ballast::ops
