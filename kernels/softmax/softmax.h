// Softmax, log-softmax and the cross entropy of logits with integer labels.
#pragma once

#include "kernels/plan/plan.h"

#include <string>
#include <vector>

namespace ballast::kernels {

// op: "softmax" or "log_softmax". Input x f32, output of the same shape.
Plan plan_softmax(DeviceClass device_class, const std::string& op, const Shape& shape,
                  int64_t axis);
// Inputs dy and y, the op's result; output dx.
Plan plan_softmax_grad(DeviceClass device_class, const std::string& op, const Shape& shape,
                       int64_t axis);

// inputs logits f32[B,C], labels i32[B]; output loss f32[B] = -sum over c of target_bc
// log_softmax(logits_b)_c, where the target is onehot(label_b) (1 - smoothing) + smoothing / C. A
// label outside [0, C) gives NaN for that row (and a NaN gradient row).
Plan plan_softmax_cross_entropy(DeviceClass device_class, int64_t batch, int64_t classes,
                                float smoothing = 0);
// inputs dloss f32[B], logits, labels; output dlogits f32[B,C] = dloss_b (softmax(logits_b) -
// target_b).
Plan plan_softmax_cross_entropy_grad(DeviceClass device_class, int64_t batch, int64_t classes,
                                     float smoothing = 0);

}  // namespace ballast::kernels
