// Softmax cross entropy with integer labels.
#pragma once

#include "kernels/plan.h"

#include <string>
#include <vector>

namespace ballast::kernels {

// inputs logits f32[B,C], labels i32[B]; output loss f32[B] = logsumexp(logits_b) -
// logits_b[label_b]. A label outside [0, C) gives NaN for that row (and a NaN gradient row).
Plan plan_softmax_cross_entropy(DeviceClass device_class, int64_t batch, int64_t classes);
// inputs dloss f32[B], logits, labels; output dlogits f32[B,C] = dloss_b (softmax(logits_b) -
// onehot_b).
Plan plan_softmax_cross_entropy_grad(DeviceClass device_class, int64_t batch, int64_t classes);

}  // namespace ballast::kernels
