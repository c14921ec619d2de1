// Pooling on CPUs with planes in the lanes (pool_lanes_generator.cpp,
// pool_lanes_max_generator.cpp).
#pragma once

#include "kernels/pool/pool.h"

namespace ballast::kernels {

// Small planes whose rows, or rows of windows, are less than a vector.
bool is_pool_by_lanes(DeviceClass device_class, const PoolConfig& config);
// `op`: max or avg; as plan_max_pool2d and so on.
Plan plan_pool_lanes(const std::string& op, const PoolConfig& config);
Plan plan_pool_lanes_grad(const std::string& op, const PoolConfig& config);

// Maxima of any windows of small planes.
bool is_max_pool_by_lanes(DeviceClass device_class, const PoolConfig& config);
Plan plan_max_pool_lanes(const PoolConfig& config);

}  // namespace ballast::kernels
