// The fuser's inner entry: inputs as strided views. Everyone outside this folder calls plan_fused.
// Thread-safe.
#pragma once

#include "kernels/kernels.h"

namespace ballast::kernels {

// Per input, for each dimension of the outputs' shape (outermost first): elements between
// neighbours; 0 repeats.
using InputStrides = std::vector<std::vector<int64_t>>;

// As plan_fused, but the inputs' shapes are of no account. The chain has been checked.
Plan plan_fused_strided(DeviceClass device_class, const FusedPointwise& fused,
                        const InputStrides& strides);

}  // namespace ballast::kernels
