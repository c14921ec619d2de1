// Normalisations with their gradients. Tensors are f32; nothing runs in place.
//
// Layers: x[rows, length] by row. Groups and batches: x[batch, channels, inner], by (batch, group)
// or by channel. x' is (x - mean) rstd, rstd 1 / sqrt(variance + epsilon) with the biased variance.
#pragma once

#include "kernels/plan/plan.h"

#include <string>
#include <vector>

namespace ballast::kernels {

// Inputs x, gamma[length], beta[length]; outputs y = x' gamma + beta, mean[rows], rstd[rows].
Plan plan_layer_norm(DeviceClass device_class, int64_t rows, int64_t length, float epsilon);
// Inputs dy, x, gamma, mean, rstd; outputs dx, dgamma, dbeta.
Plan plan_layer_norm_grad(DeviceClass device_class, int64_t rows, int64_t length);

// Without a mean: rstd = 1 / sqrt(mean(x^2) + epsilon). Inputs x, gamma; outputs y = x rstd gamma,
// rstd[rows].
Plan plan_rms_norm(DeviceClass device_class, int64_t rows, int64_t length, float epsilon);
// Inputs dy, x, gamma, rstd; outputs dx, dgamma.
Plan plan_rms_norm_grad(DeviceClass device_class, int64_t rows, int64_t length);

struct ChannelShape {
  int64_t batch = 1, channels = 1, inner = 1;
};

// Inputs x, gamma[channels], beta[channels]; outputs y, mean[batch, groups], rstd[batch, groups].
Plan plan_group_norm(DeviceClass device_class, const ChannelShape& shape, int64_t groups,
                     float epsilon);
// Inputs dy, x, gamma, mean, rstd; outputs dx, dgamma, dbeta.
Plan plan_group_norm_grad(DeviceClass device_class, const ChannelShape& shape, int64_t groups);

// Inputs x, gamma, beta, running mean and variance; outputs y, the running values moved by
// `momentum` towards the batch's (its unbiased variance), mean[channels], rstd[channels].
Plan plan_batch_norm(DeviceClass device_class, const ChannelShape& shape, float epsilon,
                     float momentum);
// Inputs dy, x, gamma, mean, rstd; outputs dx, dgamma, dbeta.
Plan plan_batch_norm_grad(DeviceClass device_class, const ChannelShape& shape);
// Inputs x, gamma, beta, mean, variance (all of the channels); output y.
Plan plan_batch_norm_inference(DeviceClass device_class, const ChannelShape& shape, float epsilon);

}  // namespace ballast::kernels
