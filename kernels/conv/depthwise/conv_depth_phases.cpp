#include "kernels/conv/depthwise/conv_depth_phases.h"

#include "kernels/conv/conv_arguments.h"
#include "kernels/conv/conv_operands.h"
#include "kernels/conv/conv_phases.h"
#include "kernels/conv/depthwise/conv_depth_in_place.h"
#include "kernels/plan/plan_builder.h"
#include "kernels/recipe/lanes.h"
#include "kernels/shape/region.h"

#include <algorithm>

namespace ballast::kernels {
namespace {

// The phases along an axis, in windows of one size that hold those of all, over dy behind as many
// zeros.
struct Axis {
  int64_t length;
  Phases phases;
  int64_t window = 0;

  Axis(int64_t padding, int64_t kernel, int64_t stride, int64_t extent)
      : length(extent / stride), phases(padding, kernel, stride, length) {
    for (const Phase& one : phases.all) window = std::max(window, first_tap(one) + one.count);
  }
  // Of the window, of a phase.
  int64_t first_tap(const Phase& phase) const { return phases.before - phase.before; }
  // Zeros behind dy, of so many rows or columns.
  int64_t behind(int64_t given) const { return length + window - 1 - phases.before - given; }
};
Axis rows_of(const ConvConfig& c) { return {c.top, c.kernel_h, c.stride_h, c.height}; }
Axis columns_of(const ConvConfig& c) { return {c.left, c.kernel_w, c.stride_w, c.width}; }

// Of dy to [batch, groups, stride_h, stride_w, height / stride_h, width / stride_w].
ConvConfig of_phases(const ConvConfig& c, const Axis& rows, const Axis& columns) {
  ConvConfig phases = c;
  phases.height = c.out_h(), phases.width = c.out_w();
  phases.out_channels = c.groups * c.stride_h * c.stride_w;
  phases.kernel_h = rows.window, phases.kernel_w = columns.window;
  phases.stride_h = phases.stride_w = 1;
  phases.top = rows.phases.before, phases.left = columns.phases.before;
  phases.bottom = rows.behind(phases.height), phases.right = columns.behind(phases.width);
  return phases;
}

// The windows of all phases from those in slot 0 to slot 1, with zeros for taps that are none.
Plan plan_windows(const ConvConfig& c, const Axis& rows, const Axis& columns) {
  const int64_t window = rows.window * columns.window, of_group = c.stride_h * c.stride_w * window;
  Recorder recorder;
  record_fill(recorder, DeviceClass::kCpu, sizeof(float), {c.groups * of_group}, {}, {1, 0, {1}});
  int64_t begin = 0;
  for (const Phase& row : rows.phases.all) {
    for (const Phase& column : columns.phases.all) {
      const int64_t first = rows.first_tap(row) * columns.window + columns.first_tap(column);
      record_copy(recorder, DeviceClass::kCpu, sizeof(float), {c.groups, row.count, column.count},
                  {0,
                   row.last(c.stride_h) * c.kernel_w + column.last(c.stride_w),
                   {c.kernel_h * c.kernel_w, -c.stride_h * c.kernel_w, -c.stride_w}},
                  {1, begin + first, {of_group, columns.window, 1}});
      begin += window;
    }
  }
  return recorder.finish();
}

// dx, in slot 2, from its phases in slot 0.
Plan weave(const ConvConfig& c) {
  const int64_t across = c.width / c.stride_w, down = c.height / c.stride_h, phase = across * down;
  Recorder recorder;
  weave_phases(recorder, c,
               {0,
                DType::kF32,
                {across, down, c.stride_w, c.stride_h, c.batch * c.groups},
                {1, across, phase, phase * c.stride_w, phase * c.stride_w * c.stride_h},
                {}});
  return recorder.finish();
}

}  // namespace

bool is_depth_phases_input_grad(const ConvConfig& c) {
  constexpr int64_t kMostTaps = 3;  // along an axis, of a phase: for more there are no fast kernels
  if (c.in_channels != c.groups || c.out_channels != c.groups || c.dilation_h != 1 ||
      c.dilation_w != 1 || c.stride_w != 2 || c.stride_h > 2 || c.kernel_h * c.kernel_w <= 9 ||
      c.height % c.stride_h != 0 || c.width % 2 != 0 || c.width < 2 * kLanes ||
      elements_of(y_shape(c)) == 0 || is_in_place_input_grad(c)) {
    return false;
  }
  const Axis rows = rows_of(c), columns = columns_of(c);
  const ConvConfig phases = of_phases(c, rows, columns);
  return !rows.phases.has_empty && !columns.phases.has_empty &&
         std::max(rows.window, columns.window) <= kMostTaps &&
         std::min({phases.top, phases.bottom, phases.left, phases.right}) >= 0;
}

Plan plan_conv2d_input_grad_depth_phases(const ConvConfig& c) {
  const Axis rows = rows_of(c), columns = columns_of(c);
  const ConvConfig of_dy = of_phases(c, rows, columns);
  PlanBuilder builder(3);
  const uint32_t windows = builder.add_floats(elements_of(w_shape(of_dy))),
                 phases = builder.add_floats(elements_of(x_shape(c)));
  builder.append(plan_windows(c, rows, columns), {1, windows});
  builder.append(plan_conv2d(DeviceClass::kCpu, of_dy, {}), {0, windows, phases});
  builder.append(weave(c), {phases, phases, 2});
  return builder.finish();
}

}  // namespace ballast::kernels
