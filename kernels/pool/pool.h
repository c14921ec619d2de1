// Max and average pooling over planes and their gradients. f32. Stateless; any thread may call.
#pragma once

#include "kernels/plan/plan.h"

#include <string>
#include <vector>

namespace ballast::kernels {

// Windows over x[planes, height, width] (planes = batch times channels) give y[planes, out_h,
// out_w]. Padding never wins a maximum; average pooling counts it as zeros or leaves it out.
struct PoolConfig {
  int64_t planes = 0, height = 0, width = 0;
  int64_t kernel_h = 1, kernel_w = 1, stride_h = 1, stride_w = 1;
  int64_t top = 0, bottom = 0, left = 0, right = 0;
  int64_t dilation_h = 1, dilation_w = 1;  // 1 for average pooling
  bool counts_padding = true;

  int64_t out_h() const;
  int64_t out_w() const;
};

// x -> y. The first maximum of a window wins, and a NaN wins over numbers. A window without any
// element of x gives -inf.
Plan plan_max_pool2d(DeviceClass device_class, const PoolConfig& config);
// dy, x -> dx: every dy goes to the winner of its window.
Plan plan_max_pool2d_grad(DeviceClass device_class, const PoolConfig& config);
// g (of x's shape), x -> g at the winner of every window; 0 where there is none.
Plan plan_max_pool2d_grad_grad(DeviceClass device_class, const PoolConfig& config);
// x -> y
Plan plan_avg_pool2d(DeviceClass device_class, const PoolConfig& config);
// dy -> dx
Plan plan_avg_pool2d_grad(DeviceClass device_class, const PoolConfig& config);

}  // namespace ballast::kernels
