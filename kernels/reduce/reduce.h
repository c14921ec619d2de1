// Reductions over axes.
#pragma once

#include "kernels/plan.h"

#include <string>
#include <vector>

namespace ballast::kernels {

// "all"

// `axes`: sorted, distinct, in range. argmax/argmin take one axis and give i32 (lowest index wins;
// a NaN wins over numbers). The output is dense over the kept axes, whatever keep_dims says.
// Empty reductions: sum 0, mean NaN, prod 1, any 0, all 1; max/min/arg* are refused by graph/ops.
Plan plan_reduce(DeviceClass device_class, const std::string& kind, const TensorType& input,
                 const std::vector<int64_t>& axes, const TensorType& output);

}  // namespace ballast::kernels
