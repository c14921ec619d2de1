// Chains of pointwise steps and reductions along rows as one kernel, compiled at run time.
#pragma once

#include "kernels/pointwise/pointwise.h"

#include <string>
#include <vector>

namespace ballast::kernels {

// Steps are those of plan_fused and, of f32, bf16 or f16 along the last axis, softmax, log_softmax,
// and reduce_sum, reduce_mean, reduce_max and reduce_min, which keep that axis as 1. The inputs
// broadcast to one shape [..., length]; a step has that shape or [..., 1]. There is one output, the
// last step.
//
// Every row stays near at hand while all steps pass over it: softmax or a normalisation written out
// in such steps reads its input once and writes its result once. Results equal those of the
// separate kernels bit for bit. Not in place.
Plan plan_fused_rows(DeviceClass device_class, const FusedPointwise& fused);

// What plan_fused_rows takes: lengths of whole rows, and inputs that lie in rows a constant apart.
bool is_row_reduction(const std::string& op);
bool is_row_op(const std::string& op);  // these and softmax
bool are_fusable_rows(const Shape& shape);
bool is_fusable_row_input(const Shape& input, const Shape& shape);

}  // namespace ballast::kernels
