// Optimizer steps.
#pragma once

#include "kernels/plan.h"

#include <string>
#include <vector>

namespace ballast::kernels {

// inputs param, grad, lr (scalar); output param - lr * grad.
Plan plan_sgd(DeviceClass device_class, int64_t n);
// inputs param, accum, grad, lr (scalar), momentum (scalar); outputs param', accum':
// accum' = momentum accum + grad; param' = param - lr accum', or with Nesterov
// param - lr (grad + momentum accum'). MindSpore's ApplyMomentum.
Plan plan_momentum(DeviceClass device_class, int64_t n, bool use_nesterov);

}  // namespace ballast::kernels
