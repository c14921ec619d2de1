// A plan for f32 tensors, run on tensors stored as bf16 or f16: casts into the workspace, the plan
// itself, casts back.
#pragma once

#include "kernels/plan/plan.h"

#include <vector>

namespace ballast::kernels {

// An operand as it is stored and as `plan` has it; only the dtypes may differ.
struct WidenedOperand {
  TensorType stored, wide;
};
Plan widen(DeviceClass device_class, const std::vector<WidenedOperand>& inputs,
           const std::vector<WidenedOperand>& outputs, Plan plan);

}  // namespace ballast::kernels
