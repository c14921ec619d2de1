// Products of few results and many steps on GPUs: parts of the steps are products side by side,
// which are added up afterwards, in their order. Private to this folder; plain functions.
#pragma once

#include "kernels/matmul/matmul.h"

namespace ballast::kernels {

// How many parts; 1 where the product is better computed whole. The bits are others, so it depends
// on nothing that a fused chain changes.
int64_t split_parts(DeviceClass device_class, const MatmulConfig& config);

// As plan_matmul, of so many parts, which divide k.
Plan plan_split_matmul(DeviceClass device_class, const MatmulConfig& config, int64_t parts);

}  // namespace ballast::kernels
