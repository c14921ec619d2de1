// Reductions over axes.
#pragma once

#include "kernels/plan/plan.h"
#include "kernels/pointwise/pointwise.h"

#include <string>
#include <vector>

namespace ballast::kernels {

// kind: "sum", "mean", "prod", "max", "min", "any" or "all".
//
// `axes`: sorted, distinct, in range. The output is dense over the kept axes, whatever keep_dims
// says. Empty reductions: sum 0, mean NaN, prod 1, any 0, all 1; max and min are refused by
// graph/ops.
Plan plan_reduce(DeviceClass device_class, const std::string& kind, const TensorType& input,
                 const std::vector<int64_t>& axes, const TensorType& output);

// The same of what a chain of pointwise steps gives, compiled at run time: nothing lies between
// them in memory. The chain's one output is its last step. Slots: its inputs, then the result. The
// bits of plan_fused and plan_reduce.
Plan plan_fused_reduce(DeviceClass device_class, const std::string& kind,
                       const FusedPointwise& chain, const std::vector<int64_t>& axes,
                       const TensorType& output);
// Whether a chain that gives `whole`, reduced over `axes`, takes an input of this shape: one that
// lies along the reduced axes, before and behind them as single dimensions would. Not where that
// would be rows or columns of less than a vector.
bool is_fusable_before_reduction(const Shape& input, const Shape& whole,
                                 const std::vector<int64_t>& axes);

// kind: "argmax" or "argmin", along `axis` (from 0), which has elements: i32. The lowest index
// wins; a NaN wins over numbers.
Plan plan_arg(DeviceClass device_class, const std::string& kind, const TensorType& input,
              int64_t axis);

// Running sums along `axis` (from 0): of all elements up to this one, without it if `is_exclusive`,
// from the end if `is_reverse`.
Plan plan_cumsum(DeviceClass device_class, const TensorType& type, int64_t axis, bool is_exclusive,
                 bool is_reverse);

}  // namespace ballast::kernels
