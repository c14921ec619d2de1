// How much of a loop nest one work-group takes. Plain functions; any thread.
#pragma once

#include "kernels/plan/halide_runtime.h"

#include <vector>

namespace ballast::kernels {

// Steps of x and y.
struct Chunks {
  int32_t x = 1, y = 1;
};

// Of a GPU: as many work-items, powers of two and 256 at most.
Chunks group_items(int64_t width, int64_t height);

// What kernels that move elements are told: how many lanes a step of x takes, then the steps of x,
// y and z by work-group. `extents`: of x, y and z; `most`: steps of a CPU's work-group.
std::vector<HostArg> move_chunks(DeviceClass device_class, int64_t lanes, const Shape& extents,
                                 int64_t most);

}  // namespace ballast::kernels
