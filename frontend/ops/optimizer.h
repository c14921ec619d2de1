// Optimizer steps and what goes with them: norms, clipping, checks. Each takes a whole list of
// tensors and runs in few launches.
#pragma once

#include "frontend/tensor/attrs.h"
#include "frontend/tensor/operand.h"

#include <vector>

namespace ballast::ops {

// New values; nothing is written in place, except that a compiled step that assigns a parameter its
// new value does it in the parameter's memory. Formulas: docs/ops.md.
Tensor apply_gradient_descent(const Operand& param, const Operand& grad, const Operand& lr);
// {param, accum}
std::vector<Tensor> apply_momentum(const Operand& param, const Operand& accum, const Operand& grad,
                                   const Operand& lr, const Operand& momentum,
                                   bool use_nesterov = false);
// {param, m, v}, as all the following.
std::vector<Tensor> apply_adam(const Operand& param, const Operand& m, const Operand& v,
                               const Operand& grad, const Operand& beta1_power,
                               const Operand& beta2_power, const Operand& lr, const Operand& beta1,
                               const Operand& beta2, const Operand& epsilon,
                               bool use_nesterov = false);
std::vector<Tensor> apply_adam_weight_decay(const Operand& param, const Operand& m,
                                            const Operand& v, const Operand& grad,
                                            const Operand& lr, const Operand& beta1,
                                            const Operand& beta2, const Operand& epsilon,
                                            const Operand& weight_decay);

// A step op over many tensors: `tensors` are each tensor's operands in turn (param, states, grad),
// `per_tensor` of them; the result is each tensor's new values in turn. Long lists become several
// calls.
std::vector<Tensor> apply_to_all(const char* op, const std::vector<Tensor>& tensors,
                                 size_t per_tensor, const std::vector<Tensor>& scalars,
                                 const Attrs& attrs = {}, Where where = Where::here());

// sqrt of the sum of the squares of all elements: f32[].
Tensor global_norm(const std::vector<Tensor>& tensors, Where where = Where::here());
// bool[]: no element is infinite or NaN.
Tensor all_finite(const std::vector<Tensor>& tensors, Where where = Where::here());
// Every tensor times one f32 scalar.
std::vector<Tensor> scale_tensors(const std::vector<Tensor>& tensors, const Operand& factor);

// Scaled down together so that their global norm (or `use_norm`, if defined) is clip_norm at most.
std::vector<Tensor> clip_by_global_norm(const std::vector<Tensor>& tensors, double clip_norm = 1.0,
                                        const Tensor& use_norm = {}, Where where = Where::here());
// x scaled down so that its own norm, over `axes` or all, is clip_norm at most.
Tensor clip_by_norm(const Operand& x, double clip_norm, const std::vector<int64_t>& axes = {});
// min(max(x, low), high); NaN stays.
Tensor clip_by_value(const Operand& x, const Operand& low, const Operand& high);

}  // namespace ballast::ops
