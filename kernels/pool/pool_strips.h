// Poolings over square windows on GPUs by work-items that compute strips (kernels/recipe/strips.h).
// Stateless.
#pragma once

#include "kernels/pool/pool.h"

namespace ballast::kernels {

// Whether there are kernels for the windows of the maximum, and of the gradients.
bool is_max_pool_strips(DeviceClass device_class, const PoolConfig& config);
bool is_max_pool_grad_strips(DeviceClass device_class, const PoolConfig& config);
bool is_avg_pool_grad_strips(DeviceClass device_class, const PoolConfig& config);

// Operands and results as of the plans in pool.h.
Plan plan_max_pool_strips(const PoolConfig& config);
Plan plan_max_pool_grad_strips(const PoolConfig& config);
Plan plan_avg_pool_grad_strips(const PoolConfig& config);

}  // namespace ballast::kernels
