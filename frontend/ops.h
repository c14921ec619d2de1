// Every public op. Arguments broadcast by numpy's rules unless said otherwise; numbers stand for
// scalars. Called on concrete tensors they run now, inside a trace they are recorded.
#pragma once

#include "frontend/operand.h"
#include "frontend/tree.h"

#include <vector>

namespace ballast {

Tensor operator+(const Operand& a, const Operand& b);
Tensor operator-(const Operand& a, const Operand& b);
Tensor operator*(const Operand& a, const Operand& b);
Tensor operator/(const Operand& a, const Operand& b);
Tensor operator-(const Operand& x);

// x, after everything in `deps` (tensors, or vectors, tuples and pairs of them) has been computed.
template <class... Deps>
Tensor depend(const Operand& x, const Deps&... deps);
// x, through which no gradient flows.
Tensor stop_gradient(const Operand& x);

namespace ops {

using Axes = std::vector<int64_t>;  // empty: all; negative counts from the end

// Any op of the plugin by name.
std::vector<Tensor> call(const std::string& name, const std::vector<Tensor>& inputs,
                         const Attrs& attrs = {}, Where where = Where::here());

// ---- pointwise, f32
Tensor neg(const Operand& x);
Tensor abs(const Operand& x);
Tensor sign(const Operand& x);
Tensor exp(const Operand& x);
Tensor log(const Operand& x);
Tensor sqrt(const Operand& x);
Tensor rsqrt(const Operand& x);       // 1 / sqrt(x)
Tensor reciprocal(const Operand& x);  // 1 / x
Tensor tanh(const Operand& x);
Tensor sigmoid(const Operand& x);
Tensor relu(const Operand& x);  // max(x, 0)
Tensor square(const Operand& x);
Tensor floor(const Operand& x);
Tensor add(const Operand& a, const Operand& b);
Tensor sub(const Operand& a, const Operand& b);
Tensor mul(const Operand& a, const Operand& b);
Tensor div(const Operand& a, const Operand& b);
Tensor maximum(const Operand& a, const Operand& b);
Tensor minimum(const Operand& a, const Operand& b);
Tensor pow(const Operand& a, const Operand& b);
Tensor relu_grad(const Operand& dy, const Operand& y);  // dy where y > 0, else 0

// ---- comparisons and logic, bool
Tensor equal(const Operand& a, const Operand& b);
Tensor not_equal(const Operand& a, const Operand& b);
Tensor less(const Operand& a, const Operand& b);
Tensor less_equal(const Operand& a, const Operand& b);
Tensor greater(const Operand& a, const Operand& b);
Tensor greater_equal(const Operand& a, const Operand& b);
Tensor logical_and(const Operand& a, const Operand& b);
Tensor logical_or(const Operand& a, const Operand& b);
Tensor logical_not(const Operand& x);
Tensor select(const Operand& condition, const Operand& a,
              const Operand& b);  // a where true, else b

// ---- type and shape
Tensor cast(const Operand& x, DType dtype);
Tensor broadcast_to(const Operand& x, const Shape& shape);
Tensor reshape(const Operand& x, Shape shape);                              // one extent may be -1
Tensor transpose(const Operand& x, const std::vector<int64_t>& perm = {});  // empty: reversed
Tensor flatten(const Operand& x);                                           // [B, ...] -> [B, n]

// ---- reductions
Tensor reduce_sum(const Operand& x, const Axes& axes = {}, bool keep_dims = false);
Tensor reduce_mean(const Operand& x, const Axes& axes = {}, bool keep_dims = false);
Tensor reduce_max(const Operand& x, const Axes& axes = {}, bool keep_dims = false);
Tensor reduce_min(const Operand& x, const Axes& axes = {}, bool keep_dims = false);
Tensor reduce_prod(const Operand& x, const Axes& axes = {}, bool keep_dims = false);
Tensor reduce_any(const Operand& x, const Axes& axes = {}, bool keep_dims = false);
Tensor reduce_all(const Operand& x, const Axes& axes = {}, bool keep_dims = false);
Tensor argmax(const Operand& x, int64_t axis = -1);  // i32; the lowest index wins
Tensor argmin(const Operand& x, int64_t axis = -1);
Tensor sum(const Operand& x, const Axes& axes = {}, bool keep_dims = false);
Tensor mean(const Operand& x, const Axes& axes = {}, bool keep_dims = false);

// ---- linear algebra
// a [..., M, K] (or [K, M] with transpose_a) times b [K, N] (or [N, K] with transpose_b).
Tensor matmul(const Operand& a, const Operand& b, bool transpose_a = false,
              bool transpose_b = false);

// ---- composites
Tensor softmax(const Operand& x, int64_t axis = -1);
Tensor log_softmax(const Operand& x, int64_t axis = -1);
Tensor gelu(const Operand& x);  // tanh form
Tensor silu(const Operand& x);  // x sigmoid(x)

// ---- losses; logits f32[B, C], labels i32[B]
Tensor softmax_cross_entropy(const Operand& logits, const Operand& labels);  // f32[B]
Tensor softmax_cross_entropy_grad(const Operand& dloss, const Operand& logits,
                                  const Operand& labels);

// ---- optimizer steps: new values, nothing is written in place
Tensor apply_gradient_descent(const Operand& param, const Operand& grad, const Operand& lr);
// {param, accum}
std::vector<Tensor> apply_momentum(const Operand& param, const Operand& accum, const Operand& grad,
                                   const Operand& lr, const Operand& momentum,
                                   bool use_nesterov = false);

}  // namespace ops

Tensor depend_on(const Operand& x, const std::vector<Tensor>& deps);

template <class... Deps>
Tensor depend(const Operand& x, const Deps&... deps) {
  std::vector<Tensor> leaves;
  (append_leaves(deps, leaves), ...);
  return depend_on(x, leaves);
}

}  // namespace ballast
