// Matrix products, one or a batch of them.
#pragma once

#include "kernels/plan/plan.h"
#include "kernels/pointwise/pointwise.h"

#include <optional>
#include <string>
#include <vector>

namespace ballast::kernels {

// Elements from one row, or column, to the next.
struct MatmulStrides {
  int64_t row = 0, column = 0;
};

// One batch dimension: elements from one product's operand to the next; 0 repeats the operand.
struct MatmulBatch {
  int64_t extent = 1;
  int64_t a = 0, b = 0, c = 0;
};

// C[M,N] = epilogue(op(A)[M,K] op(B)[K,N]); op(X) = X or X transposed.
// epilogue(x) = activation(scale x + bias) + residual, each part where it is given.
struct MatmulConfig {
  int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  bool has_bias = false;  // bias[N], added to each row
  // A name of matmul_activations.h, or "relu_grad": x where y > 0, else 0; y[M,N] lies as C does.
  std::string activation = "none";
  bool has_residual = false;  // residual[M,N], which lies as C does; not with relu_grad
  // Outermost first; at most three dimensions that neither are 1 nor merge with a neighbour.
  std::vector<MatmulBatch> batch;
  // Where op(A), op(B) and C are not dense matrices.
  std::optional<MatmulStrides> a_strides, b_strides, c_strides;
  DType dtype = DType::kF32;  // or i32, i64: sums wrap, and there is no epilogue
  bool has_scale = false;  // scale[N], of each row, beside a bias and where takes_scale() says so
};

// The activations that a config may name (without "none" and "relu_grad"): unary pointwise ops.
bool is_matmul_activation(const std::string& op);
// Throws, without an op's name in front, where the epilogue makes no sense or has no kernel.
void check_epilogue(const MatmulConfig& config);

// Whether there is a kernel for a config with a scale.
bool takes_scale(DeviceClass device_class, const MatmulConfig& config);

// Slots: A, B, then scale, bias, then residual or y, then C, all of one dtype. K = 0 gives zeros
// (through the epilogue). With BALLAST_TUNE=1 (kernels/plan/tune.h) the way to compute is measured
// instead of estimated; all ways give the same bits.
Plan plan_matmul(DeviceClass device_class, const MatmulConfig& config);

// A product with a chain of pointwise steps behind it, compiled at run time for these shapes: no
// pass over memory lies between them. `config` has no epilogue and a dense C. The chain's first
// input is C, f32; the others are such as is_fusable_beside_product says; its one output, f32, is
// the last step. Slots: A, B, the chain's other inputs, the result. The bits of plan_matmul and
// plan_fused.
Plan plan_fused_matmul(DeviceClass device_class, const MatmulConfig& config,
                       const FusedPointwise& chain);
// Whether a chain behind a product of shape `c` takes an operand of this shape: c's, or one value
// per column, or one for all.
bool is_fusable_beside_product(const Shape& operand, const Shape& c);

}  // namespace ballast::kernels
