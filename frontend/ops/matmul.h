// Matrix products.
#pragma once

#include "frontend/tensor/operand.h"

#include <vector>

namespace ballast::ops {

// numpy's matmul: a [..., M, K] (or [..., K, M] with transpose_a) times b [..., K, N] (or
// [..., N, K] with transpose_b); leading dimensions broadcast. An operand of rank 1 is a row on the
// left, a column on the right, and its dimension is not in the result.
Tensor matmul(const Operand& a, const Operand& b, bool transpose_a = false,
              bool transpose_b = false);

}  // namespace ballast::ops
