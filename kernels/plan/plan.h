// What a kernel family answers to "how do I run this on these shapes?": a list of launches over
// numbered slots. Slots are the inputs in order, then the outputs, then (if workspace_bytes > 0)
// one workspace buffer, then the regions of that buffer.
//
// A plan depends on op, attributes, shapes and device class only. It is made by running Halide's
// host function once against a recorder (halide_runtime.h); afterwards Halide is not involved.
#pragma once

#include "device/device.h"
#include "device/launch.h"
#include "kernels/types.h"

#include <cstdint>
#include <vector>

namespace ballast::kernels {

using device::DeviceClass;

// A part of the workspace that has a slot of its own.
struct Region {
  uint64_t offset = 0, bytes = 0;
};
// What every device lets a view begin at.
constexpr uint64_t kRegionAlignment = 1024;

struct Plan {
  std::vector<device::Launch> launches;  // empty where there is nothing to compute (zero elements)
  uint64_t workspace_bytes = 0;
  std::vector<Region> regions;
};

}  // namespace ballast::kernels
