// Reductions over axes.
#pragma once

#include "kernels/plan.h"

#include <string>
#include <vector>

namespace ballast::kernels {

// kind: "sum", "mean", "prod", "max", "min", "any", "all", "argmax" or "argmin".
//
// `axes`: sorted, distinct, in range. argmax/argmin take one axis and give i32 (lowest index wins;
// a NaN wins over numbers). The output is dense over the kept axes, whatever keep_dims says.
// Empty reductions: sum 0, mean NaN, prod 1, any 0, all 1; max/min/arg* are refused by graph/ops.
Plan plan_reduce(DeviceClass device_class, const std::string& kind, const TensorType& input,
                 const std::vector<int64_t>& axes, const TensorType& output);

// Running sums along `axis` (from 0): of all elements up to this one, without it if `is_exclusive`,
// from the end if `is_reverse`.
Plan plan_cumsum(DeviceClass device_class, const TensorType& type, int64_t axis, bool is_exclusive,
                 bool is_reverse);

}  // namespace ballast::kernels
