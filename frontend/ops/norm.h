// Normalisations. Statistics are the mean and rstd = 1 / sqrt(variance + epsilon), the variance
// being the biased one.
#pragma once

#include "frontend/tensor/operand.h"

#include <vector>

namespace ballast::ops {

struct Normed {
  Tensor y, mean, rstd;
};
struct NormGradients {
  Tensor dx, dgamma, dbeta;
};

// Over the dimensions from begin_norm_axis on together, whose shape gamma and beta have. The
// statistics keep these dimensions with extent 1.
Normed layer_norm(const Operand& x, const Operand& gamma, const Operand& beta,
                  int64_t begin_norm_axis = -1, double epsilon = 1e-5);
NormGradients layer_norm_grad(const Operand& dy, const Operand& x, const Operand& gamma,
                              const Operand& mean, const Operand& rstd,
                              int64_t begin_norm_axis = -1);

// x gamma / sqrt(mean(x^2) + epsilon): y and rstd, without a mean.
Normed rms_norm(const Operand& x, const Operand& gamma, int64_t begin_norm_axis = -1,
                double epsilon = 1e-6);
NormGradients rms_norm_grad(const Operand& dy, const Operand& x, const Operand& gamma,
                            const Operand& rstd, int64_t begin_norm_axis = -1);

// x[N, C, ...] by sample and group of neighbouring channels; statistics [N, num_groups].
Normed group_norm(const Operand& x, int64_t num_groups, const Operand& gamma, const Operand& beta,
                  double epsilon = 1e-5);
NormGradients group_norm_grad(const Operand& dy, const Operand& x, const Operand& gamma,
                              const Operand& mean, const Operand& rstd, int64_t num_groups);
// By sample and channel; statistics [N, C].
Normed instance_norm(const Operand& x, const Operand& gamma, const Operand& beta,
                     double epsilon = 1e-5);

// x[N, C, ...] by channel. The running values move by `momentum` towards the batch's, whose
// variance is taken unbiased there.
struct BatchNormed {
  Tensor y, running_mean, running_variance, mean, rstd;
};
BatchNormed batch_norm(const Operand& x, const Operand& gamma, const Operand& beta,
                       const Operand& running_mean, const Operand& running_variance,
                       double epsilon = 1e-5, double momentum = 0.1);
// Without running values.
Normed batch_norm(const Operand& x, const Operand& gamma, const Operand& beta,
                  double epsilon = 1e-5);
NormGradients batch_norm_grad(const Operand& dy, const Operand& x, const Operand& gamma,
                              const Operand& mean, const Operand& rstd);
// With a given mean and variance.
Tensor batch_norm_inference(const Operand& x, const Operand& gamma, const Operand& beta,
                            const Operand& mean, const Operand& variance, double epsilon = 1e-5);

}  // namespace ballast::ops
