#include "frontend/ops/optimizer.h"

#include "frontend/ops/call.h"
#include "frontend/ops/in_f32.h"
#include "frontend/ops/ops.h"

#include <initializer_list>
#include <limits>

namespace ballast::ops {

namespace {

constexpr size_t kMaxTensors = 64;  // of one call (graph/ops/optimizer.cpp)

std::vector<Tensor> tensors_of(std::initializer_list<Operand> operands) {
  std::vector<Tensor> tensors;
  for (const Operand& operand : operands) tensors.push_back(operand.tensor());
  return tensors;
}

// The list in pieces that fit a call.
std::vector<std::vector<Tensor>> pieces_of(const std::vector<Tensor>& tensors, size_t length) {
  std::vector<std::vector<Tensor>> pieces;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (i % length == 0) pieces.emplace_back();
    pieces.back().push_back(tensors[i]);
  }
  return pieces;
}

}  // namespace

Tensor apply_gradient_descent(const Operand& param, const Operand& grad, const Operand& lr) {
  return apply_primitive("apply_gradient_descent", {param.tensor(), grad.tensor(), lr.tensor()}, {},
                         param.where())[0];
}

std::vector<Tensor> apply_momentum(const Operand& param, const Operand& accum, const Operand& grad,
                                   const Operand& lr, const Operand& momentum, bool use_nesterov) {
  return apply_primitive("apply_momentum", tensors_of({param, accum, grad, lr, momentum}),
                         {{"use_nesterov", int64_t{use_nesterov}}}, param.where());
}

std::vector<Tensor> apply_adam(const Operand& param, const Operand& m, const Operand& v,
                               const Operand& grad, const Operand& beta1_power,
                               const Operand& beta2_power, const Operand& lr, const Operand& beta1,
                               const Operand& beta2, const Operand& epsilon, bool use_nesterov) {
  return apply_primitive(
      "apply_adam",
      tensors_of({param, m, v, grad, beta1_power, beta2_power, lr, beta1, beta2, epsilon}),
      {{"use_nesterov", int64_t{use_nesterov}}}, param.where());
}

std::vector<Tensor> apply_adam_weight_decay(const Operand& param, const Operand& m,
                                            const Operand& v, const Operand& grad,
                                            const Operand& lr, const Operand& beta1,
                                            const Operand& beta2, const Operand& epsilon,
                                            const Operand& weight_decay) {
  return apply_primitive("apply_adam_weight_decay",
                         tensors_of({param, m, v, grad, lr, beta1, beta2, epsilon, weight_decay}),
                         {}, param.where());
}

std::vector<Tensor> apply_to_all(const char* op, const std::vector<Tensor>& tensors,
                                 size_t per_tensor, const std::vector<Tensor>& scalars,
                                 const Attrs& attrs, Where where) {
  std::vector<Tensor> results;
  for (std::vector<Tensor>& inputs : pieces_of(tensors, kMaxTensors * per_tensor)) {
    inputs.insert(inputs.end(), scalars.begin(), scalars.end());
    for (Tensor& result : apply_primitive(op, inputs, attrs, where)) {
      results.push_back(std::move(result));
    }
  }
  return results;
}

Tensor global_norm(const std::vector<Tensor>& tensors, Where where) {
  if (tensors.empty()) return Tensor::scalar(0);
  std::vector<Tensor> norms = tensors;
  do {  // the norm of norms is the norm of all
    std::vector<Tensor> next;
    for (const std::vector<Tensor>& piece : pieces_of(norms, kMaxTensors)) {
      next.push_back(apply_primitive("global_norm", piece, {}, where)[0]);
    }
    norms = std::move(next);
  } while (norms.size() > 1);
  return norms[0];
}

Tensor all_finite(const std::vector<Tensor>& tensors, Where where) {
  if (tensors.empty()) return Tensor::scalar(1, DType::kBool);
  Tensor result;
  for (const std::vector<Tensor>& piece : pieces_of(tensors, kMaxTensors)) {
    Tensor part = apply_primitive("all_finite", piece, {}, where)[0];
    result = result.defined() ? logical_and(result, part) : part;
  }
  return result;
}

std::vector<Tensor> scale_tensors(const std::vector<Tensor>& tensors, const Operand& factor) {
  return apply_to_all("scale_tensors", tensors, 1, {factor.tensor()}, {}, factor.where());
}

std::vector<Tensor> clip_by_global_norm(const std::vector<Tensor>& tensors, double clip_norm,
                                        const Tensor& use_norm, Where where) {
  CallScope scope(where);
  if (!(clip_norm > 0)) {
    fail(BALLAST_INVALID_ARGUMENT,
         "[clip_by_global_norm] clip_norm is {}, expected it positive (at {})", clip_norm,
         to_string(where));
  }
  if (tensors.empty()) return {};
  Tensor norm = use_norm.defined() ? use_norm : global_norm(tensors);
  return scale_tensors(tensors, Tensor::scalar(clip_norm) / maximum(norm, clip_norm));
}

Tensor clip_by_norm(const Operand& x, double clip_norm, const std::vector<int64_t>& axes) {
  CallScope scope(x.where());
  if (!(clip_norm > 0)) {
    fail(BALLAST_INVALID_ARGUMENT, "[clip_by_norm] clip_norm is {}, expected it positive (at {})",
         clip_norm, to_string(x.where()));
  }
  return in_f32(x.tensor(), [&](const Tensor& wide) {
    const Tensor total = reduce_sum(square(wide), axes, /*keep_dims=*/true);
    // Not 0, where the root's slope is infinite.
    const Tensor norm = sqrt(maximum(total, std::numeric_limits<float>::min()));
    return wide * (Tensor::scalar(clip_norm) / maximum(norm, clip_norm));
  });
}

Tensor clip_by_value(const Operand& x, const Operand& low, const Operand& high) {
  CallScope scope(x.where());
  return minimum(maximum(x, low), high);
}

}  // namespace ballast::ops
