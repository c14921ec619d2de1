// The kernel families: shapes in, plan out. Shapes and dtypes have been checked by graph/ops;
// a dtype for which no kernel was built throws kUnimplemented naming the kernel.
//
// All tensors are dense row-major. Reductions accumulate in f32 in a fixed order that depends on
// shapes only, so results repeat bit for bit.
#pragma once

#include "device/device.h"
#include "kernels/plan.h"

#include <string>
#include <vector>

namespace ballast::kernels {

using device::DeviceClass;

// ---- pointwise (pointwise.cpp; ops are the rows of pointwise_ops.inc)

// Inputs broadcast to output.shape by numpy's rules. Safe in place: the output may be the buffer of
// an input of the same shape and element size.
Plan plan_pointwise(DeviceClass device_class, const std::string& op,
                    const std::vector<TensorType>& inputs, const TensorType& output);

// A chain of pointwise steps fused into one kernel, compiled at run time (fuse.cpp). Steps are in
// order; an argument names an input or an earlier step. Every step computes in the op's own dtype
// rules; results equal those of the separate kernels bit for bit.
struct FusedStep {
  std::string op;  // a row of pointwise_ops.inc
  struct Ref {
    bool is_input = true;
    uint32_t index = 0;
  };
  std::vector<Ref> args;
  TensorType type;  // the step's result; its shape broadcasts to the common shape
};
struct FusedPointwise {
  std::vector<TensorType> inputs;
  std::vector<FusedStep> steps;
  std::vector<uint32_t> outputs;  // step numbers; all of the common shape
};
Plan plan_fused(DeviceClass device_class, const FusedPointwise& fused);

// A dense copy of a strided view: output.shape indexes the input with these strides (elements;
// 0 repeats). Serves broadcast_to and transpose. Not in place.
Plan plan_copy(DeviceClass device_class, DType dtype, const Shape& shape,
               const std::vector<int64_t>& input_strides);

// ---- reductions (reduce.cpp): "sum", "mean", "max", "min", "prod", "argmax", "argmin", "any",
// "all"

// `axes`: sorted, distinct, in range. argmax/argmin take one axis and give i32 (lowest index wins;
// a NaN wins over numbers). The output is dense over the kept axes, whatever keep_dims says.
// Empty reductions: sum 0, mean NaN, prod 1, any 0, all 1; max/min/arg* are refused by graph/ops.
Plan plan_reduce(DeviceClass device_class, const std::string& kind, const TensorType& input,
                 const std::vector<int64_t>& axes, const TensorType& output);

// ---- matmul (matmul.cpp)

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

// ---- softmax cross entropy with integer labels (cross_entropy.cpp)

// inputs logits f32[B,C], labels i32[B]; output loss f32[B] = logsumexp(logits_b) -
// logits_b[label_b]. A label outside [0, C) gives NaN for that row (and a NaN gradient row).
Plan plan_softmax_cross_entropy(DeviceClass device_class, int64_t batch, int64_t classes);
// inputs dloss f32[B], logits, labels; output dlogits f32[B,C] = dloss_b (softmax(logits_b) -
// onehot_b).
Plan plan_softmax_cross_entropy_grad(DeviceClass device_class, int64_t batch, int64_t classes);

// ---- optimizer steps (optimizer.cpp), over n elements, f32, in place (outputs may be the inputs)

// inputs param, grad, lr (scalar); output param - lr * grad.
Plan plan_sgd(DeviceClass device_class, int64_t n);
// inputs param, accum, grad, lr (scalar), momentum (scalar); outputs param', accum':
// accum' = momentum accum + grad; param' = param - lr accum', or with Nesterov
// param - lr (grad + momentum accum'). MindSpore's ApplyMomentum.
Plan plan_momentum(DeviceClass device_class, int64_t n, bool use_nesterov);

}  // namespace ballast::kernels
