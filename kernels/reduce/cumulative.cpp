// Running sums: rows by blocks that are transposed, or few one by one, other lines side by side; on
// GPUs by tiles.
#include "kernels/kernels.h"
#include "kernels/plan/halide_runtime.h"
#include "kernels/recipe/lanes.h"
#include "kernels/reduce/axis.h"
#include "kernels/reduce/cumulative_tiles.h"

#include <algorithm>

namespace ballast::kernels {
namespace {

constexpr int64_t kColumnsRows = 4;  // that cumsum_columns takes at a time
// So many rows are fewer additions one after the other than sixteen are transposed.
constexpr int64_t kFewRows = 4;

Plan plan_narrow_rows(const AxisView& view, const TensorType& type, bool is_exclusive,
                      bool is_reverse) {
  Recorder recorder(view.rules());
  recorder.call(fmt::format("cumsum_narrow_rows_{}", name_of(type.dtype)), DeviceClass::kCpu,
                view.args({view.tensor(0, type.dtype), int32_t{is_exclusive}, int32_t{is_reverse}},
                          view.tensor(1, type.dtype)));
  return recorder.finish();
}

}  // namespace

Plan plan_cumsum(DeviceClass device_class, const TensorType& type, int64_t axis, bool is_exclusive,
                 bool is_reverse) {
  if (type.elements() == 0) return {};
  const AxisSplit view = split_around(type.shape, static_cast<size_t>(axis));
  const bool is_cpu = device_class == DeviceClass::kCpu;
  if (!is_cpu && are_cumulative_tiles(view)) {
    return plan_cumulative_tiles(type.dtype, view, {is_exclusive, is_reverse});
  }
  // Elements of 4 bytes that fill vectors, whichever way they lie, and some rows of these.
  const bool has_blocks = is_cpu && size_of(type.dtype) == 4;
  const AxisView lines(device_class, type.shape, axis, NarrowRowsKernels::kSome);
  if (has_blocks && lines.is_narrow()) {
    return plan_narrow_rows(lines, type, is_exclusive, is_reverse);
  }
  const bool by_rows = has_blocks && view.inner == 1 && view.axis >= kLanes;
  const bool by_columns = has_blocks && view.inner >= kLanes && view.axis >= kColumnsRows;
  const char* shape = by_rows      ? (view.outer <= kFewRows ? "row_" : "rows_")
                      : by_columns ? "columns_"
                                   : "";
  const std::string kernel = fmt::format("cumsum_{}{}", shape, name_of(type.dtype));
  const auto operand = [&](uint32_t slot) {
    if (by_rows) return Operand{slot, type.dtype, {view.axis, view.outer}, {1, view.axis}, {}};
    return Operand{slot,
                   type.dtype,
                   {view.inner, view.axis, view.outer},
                   {1, view.inner, view.inner * view.axis},
                   {}};
  };
  std::vector<HostArg> args{operand(0)};
  if (by_rows || by_columns) args.emplace_back(operand(1));
  args.insert(args.end(), {int32_t{is_exclusive}, int32_t{is_reverse}});
  if (!by_rows) {
    // Strips of some vectors, so that lines follow each other; four of them at least. Half a page
    // of a row is read fast without being asked for.
    const int64_t lanes = is_cpu && view.inner >= kLanes ? kLanes : 1;
    const int64_t vectors = ceil_div(view.inner, lanes);
    const int64_t strips = std::max<int64_t>(ceil_div(4, view.outer), 1);
    const int64_t most = by_columns ? 32 : 16;
    const int64_t chunk = is_cpu ? std::clamp<int64_t>(ceil_div(vectors, strips), 1, most) : 64;
    if (!by_columns) args.emplace_back(checked_int32(lanes));
    args.emplace_back(checked_int32(chunk));
  }
  args.emplace_back(operand(1));
  Recorder recorder;
  recorder.call(kernel, device_class, args);
  return recorder.finish();
}

}  // namespace ballast::kernels
