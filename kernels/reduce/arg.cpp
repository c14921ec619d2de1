// argmax and argmin: along rows by lanes (of floats on CPUs in two passes), else across them.
#include "kernels/kernels.h"
#include "kernels/plan/halide_runtime.h"
#include "kernels/recipe/lanes.h"
#include "kernels/reduce/row_lengths.h"

#include <algorithm>

namespace ballast::kernels {

using device::Code;
using device::fail;

Plan plan_arg(DeviceClass device_class, const std::string& kind, const TensorType& input,
              int64_t axis) {
  const AxisSplit view = split_around(input.shape, static_cast<size_t>(axis));
  if (view.outer * view.inner == 0) return {};
  if (view.axis == 0) fail(Code::kInvalidArgument, "[{}] the axis has no elements", kind);
  const bool is_rows = view.inner == 1;
  SourceRules rules;
  rules.hides_strides = is_rows;
  Recorder recorder(rules);
  // A vector of a CPU, or enough for a GPU's work-group; shorter rows lie across.
  const int64_t shortest = device_class == DeviceClass::kCpu ? kLanes : 32;
  // What a CPU's work-group takes of `count` pieces.
  const auto per_group = [](int64_t count, int64_t elements) {
    return checked_int32(std::clamp<int64_t>(32768 / elements, 1, ceil_div(count, 16)));
  };
  if (is_rows && view.axis >= shortest) {
    const bool is_search = device_class == DeviceClass::kCpu && input.dtype == DType::kF32;
    const std::string kernel =
        fmt::format("{}_{}_{}", kind, is_search ? "search" : "rows", name_of(input.dtype));
    recorder.call(
        kernel, device_class,
        {Operand{0, input.dtype, {view.axis, view.outer}, {1, view.axis}, {}},
         per_group(view.outer, view.axis), Operand{1, DType::kI32, {view.outer}, {1}, {}}});
    return recorder.finish();
  }
  // Rows lie across where there is no inner dimension.
  const std::string kernel = fmt::format("{}_{}", kind, name_of(input.dtype));
  const int64_t across = is_rows ? view.outer : view.inner, outer = is_rows ? 1 : view.outer;
  const int64_t between = is_rows ? view.axis : 1, step = is_rows ? 1 : view.inner;
  recorder.call(
      kernel, device_class,
      {Operand{
           0, input.dtype, {across, view.axis, outer}, {between, step, view.inner * view.axis}, {}},
       per_group(outer, view.axis * std::min<int64_t>(across, kColumns)),
       Operand{1, DType::kI32, {across, outer}, {1, across}, {}}});
  return recorder.finish();
}

}  // namespace ballast::kernels
