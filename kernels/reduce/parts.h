// Results of many steps whose parts are computed side by side. Stateless.
#pragma once

#include "kernels/plan/plan.h"

namespace ballast::kernels {

// `of_parts`, of two inputs, which writes `parts` x `results` f32 to slot 2, and their sum over the
// parts, in their order: the plan of inputs in slots 0 and 1, results in slot 2.
Plan plan_sum_of_parts(DeviceClass device_class, const Plan& of_parts, int64_t parts,
                       int64_t results);

}  // namespace ballast::kernels
