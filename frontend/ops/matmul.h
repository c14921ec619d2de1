// Matrix products.
#pragma once

#include "frontend/operand.h"

#include <vector>

namespace ballast::ops {

// a [..., M, K] (or [K, M] with transpose_a) times b [K, N] (or [N, K] with transpose_b).
Tensor matmul(const Operand& a, const Operand& b, bool transpose_a = false,
              bool transpose_b = false);

}  // namespace ballast::ops
