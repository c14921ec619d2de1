// Running sums on GPUs: the tiles of a line are summed at the same time. Private to this folder;
// stateless.
#pragma once

#include "kernels/plan/plan.h"
#include "kernels/types.h"

namespace ballast::kernels {

// A work-group's tile: so many elements of each work-item, and where lines are not dense so many of
// them side by side.
constexpr int kCumulativeItems = 256, kCumulativeEach = 4, kCumulativeLines = 16;
constexpr int cumulative_tile(int lines) { return kCumulativeItems * kCumulativeEach / lines; }

struct CumulativeOrder {
  bool is_exclusive, is_reverse;
};

// Whether lines are worth their tiles. Not short ones, nor so many side by side that work-items
// with a line each keep a GPU busy.
bool are_cumulative_tiles(const AxisSplit& view);
Plan plan_cumulative_tiles(DType dtype, const AxisSplit& view, const CumulativeOrder& order);

}  // namespace ballast::kernels
