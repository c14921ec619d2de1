// Moving elements without computing.
#pragma once

#include "kernels/plan.h"

#include <string>
#include <vector>

namespace ballast::kernels {

// A dense copy of a strided view: output.shape indexes the input with these strides (elements;
// 0 repeats). Serves broadcast_to and transpose. Not in place.
Plan plan_copy(DeviceClass device_class, DType dtype, const Shape& shape,
               const std::vector<int64_t>& input_strides);

}  // namespace ballast::kernels
