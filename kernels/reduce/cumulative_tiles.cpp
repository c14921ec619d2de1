#include "kernels/reduce/cumulative_tiles.h"

#include "kernels/kernels.h"
#include "kernels/plan/halide_runtime.h"
#include "kernels/plan/plan_builder.h"

#include <utility>

namespace ballast::kernels {
namespace {

constexpr DeviceClass kGpu = DeviceClass::kGpu;

// The tensor along `axis`: its inner dimension, lines, outer dimension.
Operand along(uint32_t slot, DType dtype, const AxisSplit& view, int64_t axis) {
  const int64_t inner = view.inner;
  return {slot, dtype, {inner, axis, view.outer}, {1, inner, inner * axis}, {}};
}

// The sum of each tile of a line.
Plan plan_tile_sums(DType dtype, const AxisSplit& view, int64_t tile, int64_t tiles) {
  const bool is_rows = view.inner == 1;
  const auto operand = [&](uint32_t slot, int64_t axis) {
    if (is_rows) return Operand{slot, dtype, {axis, view.outer}, {1, axis}, {}};
    return along(slot, dtype, view, axis);
  };
  Recorder recorder(kNoAliases);
  // The 1 is for CPUs' work-groups.
  recorder.call(fmt::format("reduce_{}_sum_{}", is_rows ? "rows" : "columns", name_of(dtype)), kGpu,
                {operand(0, view.axis), checked_int32(tile), 1.0f, int32_t{1}, operand(1, tiles)});
  return recorder.finish();
}

}  // namespace

bool are_cumulative_tiles(const AxisSplit& view) {
  constexpr int64_t kShortest = 64, kMostLines = 65536;
  const bool are_coalesced = view.inner >= 32;
  return view.axis >= kShortest && !(are_coalesced && view.outer * view.inner >= kMostLines);
}

Plan plan_cumulative_tiles(DType dtype, const AxisSplit& view, const CumulativeOrder& order) {
  const bool is_rows = view.inner == 1;
  const int64_t tile = cumulative_tile(is_rows ? 1 : kCumulativeLines);
  const int64_t tiles = ceil_div(view.axis, tile);
  PlanBuilder builder(2);
  uint32_t before = 0;  // not read where there is one tile
  if (tiles > 1) {
    const TensorType sums{dtype, {view.outer, tiles, view.inner}};
    const uint32_t of_tiles = builder.add_region(sums.bytes());
    before = builder.add_region(sums.bytes());
    builder.append(plan_tile_sums(dtype, view, tile, tiles), {0, of_tiles});
    builder.append(plan_cumsum(kGpu, sums, 1, /*is_exclusive=*/true, order.is_reverse),
                   {of_tiles, before});
  }
  Recorder recorder(kNoAliases);
  recorder.call(
      fmt::format("cumsum_tiles_{}_{}", is_rows ? "rows" : "columns", name_of(dtype)), kGpu,
      {along(0, dtype, view, view.axis), along(1, dtype, view, tiles), int32_t{order.is_exclusive},
       int32_t{order.is_reverse}, int32_t{tiles > 1}, along(2, dtype, view, view.axis)});
  builder.append(recorder.finish(), {0, before, 1});
  return builder.finish();
}

}  // namespace ballast::kernels
