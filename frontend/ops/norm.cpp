#include "frontend/ops/norm.h"

#include "frontend/ops/call.h"
#include "frontend/ops/shape.h"

namespace ballast::ops {

Normed layer_norm(const Operand& x, const Operand& gamma, const Operand& beta,
                  int64_t begin_norm_axis, double epsilon) {
  auto results =
      apply_primitive("layer_norm", {x.tensor(), gamma.tensor(), beta.tensor()},
                      {{"begin_norm_axis", begin_norm_axis}, {"epsilon", epsilon}}, x.where());
  return {results[0], results[1], results[2]};
}

NormGradients layer_norm_grad(const Operand& dy, const Operand& x, const Operand& gamma,
                              const Operand& mean, const Operand& rstd, int64_t begin_norm_axis) {
  auto results = apply_primitive(
      "layer_norm_grad", {dy.tensor(), x.tensor(), gamma.tensor(), mean.tensor(), rstd.tensor()},
      {{"begin_norm_axis", begin_norm_axis}}, x.where());
  return {results[0], results[1], results[2]};
}

Normed rms_norm(const Operand& x, const Operand& gamma, int64_t begin_norm_axis, double epsilon) {
  auto results =
      apply_primitive("rms_norm", {x.tensor(), gamma.tensor()},
                      {{"begin_norm_axis", begin_norm_axis}, {"epsilon", epsilon}}, x.where());
  return {results[0], {}, results[1]};
}

NormGradients rms_norm_grad(const Operand& dy, const Operand& x, const Operand& gamma,
                            const Operand& rstd, int64_t begin_norm_axis) {
  auto results =
      apply_primitive("rms_norm_grad", {dy.tensor(), x.tensor(), gamma.tensor(), rstd.tensor()},
                      {{"begin_norm_axis", begin_norm_axis}}, x.where());
  return {results[0], results[1], {}};
}

Normed group_norm(const Operand& x, int64_t num_groups, const Operand& gamma, const Operand& beta,
                  double epsilon) {
  auto results = apply_primitive("group_norm", {x.tensor(), gamma.tensor(), beta.tensor()},
                                 {{"num_groups", num_groups}, {"epsilon", epsilon}}, x.where());
  return {results[0], results[1], results[2]};
}

Normed instance_norm(const Operand& x, const Operand& gamma, const Operand& beta, double epsilon) {
  CallScope scope(x.where());
  const Tensor tensor = x.tensor();
  if (tensor.rank() < 2) {
    refuse(x.where(), "[instance_norm] input is {}, expected [N, C, ...]",
           ballast::to_string(tensor.type()));
  }
  return group_norm(tensor, tensor.shape()[1], gamma, beta, epsilon);
}

NormGradients group_norm_grad(const Operand& dy, const Operand& x, const Operand& gamma,
                              const Operand& mean, const Operand& rstd, int64_t num_groups) {
  auto results = apply_primitive(
      "group_norm_grad", {dy.tensor(), x.tensor(), gamma.tensor(), mean.tensor(), rstd.tensor()},
      {{"num_groups", num_groups}}, x.where());
  return {results[0], results[1], results[2]};
}

BatchNormed batch_norm(const Operand& x, const Operand& gamma, const Operand& beta,
                       const Operand& running_mean, const Operand& running_variance, double epsilon,
                       double momentum) {
  auto results = apply_primitive(
      "batch_norm",
      {x.tensor(), gamma.tensor(), beta.tensor(), running_mean.tensor(), running_variance.tensor()},
      {{"epsilon", epsilon}, {"momentum", momentum}}, x.where());
  return {results[0], results[1], results[2], results[3], results[4]};
}

Normed batch_norm(const Operand& x, const Operand& gamma, const Operand& beta, double epsilon) {
  CallScope scope(x.where());
  const Tensor none = zeros_like(beta.tensor());
  const BatchNormed results = batch_norm(x, gamma, beta, none, none, epsilon, 0);
  return {results.y, results.mean, results.rstd};
}

NormGradients batch_norm_grad(const Operand& dy, const Operand& x, const Operand& gamma,
                              const Operand& mean, const Operand& rstd) {
  auto results = apply_primitive(
      "batch_norm_grad", {dy.tensor(), x.tensor(), gamma.tensor(), mean.tensor(), rstd.tensor()},
      {}, x.where());
  return {results[0], results[1], results[2]};
}

Tensor batch_norm_inference(const Operand& x, const Operand& gamma, const Operand& beta,
                            const Operand& mean, const Operand& variance, double epsilon) {
  return apply_primitive(
      "batch_norm_inference",
      {x.tensor(), gamma.tensor(), beta.tensor(), mean.tensor(), variance.tensor()},
      {{"epsilon", epsilon}}, x.where())[0];
}

}  // namespace ballast::ops
