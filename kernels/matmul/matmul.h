// Matrix products.
#pragma once

#include "kernels/plan.h"

#include <string>
#include <vector>

namespace ballast::kernels {

// C[M,N] = epilogue(op(A)[M,K] op(B)[K,N]); op(X) = X or X transposed.
struct MatmulConfig {
  int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  bool has_bias = false;  // then input 2 is bias[N], added to each row
  // "none"; "relu": max(x, 0); "relu_grad": the last input is y[M,N], result is x where y > 0, else
  // 0
  std::string activation = "none";
};
// Inputs A, B, then bias if has_bias, then y if activation is "relu_grad"; f32. K = 0 gives zeros
// (through the epilogue).
Plan plan_matmul(DeviceClass device_class, const MatmulConfig& config);

}  // namespace ballast::kernels
