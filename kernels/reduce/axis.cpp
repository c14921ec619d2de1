#include "kernels/reduce/axis.h"

#include "kernels/plan/streaming.h"
#include "kernels/recipe/lanes.h"

#include <algorithm>

namespace ballast::kernels {

AxisView::AxisView(DeviceClass device_class, const Shape& shape, int64_t axis,
                   NarrowRowsKernels narrow)
    : device_class_(device_class), split_(split_around(shape, static_cast<size_t>(axis))) {
  // A vector's width, or enough work-items to be worth a group.
  const int64_t shortest = device_class == DeviceClass::kCpu ? 16 : 32;
  is_rows_ = split_.inner == 1 && split_.axis >= shortest;
  is_narrow_ = narrow == NarrowRowsKernels::kSome && device_class == DeviceClass::kCpu &&
               split_.inner == 1 && split_.axis > 1 && split_.axis < kLanes &&
               split_.outer >= kLanes;
}

int32_t AxisView::rows_per_group() const {
  // Enough per group to hide its start, and at least 16 groups to share between cores.
  constexpr int64_t kElements = 16384, kGroups = 16;
  const int64_t lines = std::min<int64_t>(split_.inner, kColumns);
  const int64_t rows =
      std::min(kElements / std::max<int64_t>(split_.axis * lines, 1), split_.outer / kGroups);
  return checked_int32(std::max<int64_t>(rows, 1));
}

SourceRules AxisView::rules() const {
  SourceRules rules = kNoAliases;
  rules.streams =
      is_rows_ && should_stream(device_class_, split_.outer, split_.axis, kStreamedRowsBytes);
  rules.hides_strides = !is_rows_;
  return rules;
}

bool AxisView::is_short() const {
  return is_rows_ && device_class_ == DeviceClass::kCpu && split_.axis <= kShortRow;
}

const char* AxisView::layout(int64_t long_row) const {
  if (is_narrow_) return "narrow_rows";
  if (!is_rows_) return "columns";
  return device_class_ == DeviceClass::kGpu && split_.axis >= long_row ? "long_rows" : "rows";
}

Operand AxisView::tensor(uint32_t slot, DType dtype) const {
  const auto [outer, axis, inner] = split_;
  if (is_narrow_) return dense_operand(slot, dtype, {split_.elements()});
  if (is_rows_) return {slot, dtype, {axis, outer}, {1, axis}, {}};
  if (inner == 1) return {slot, dtype, {outer, axis, 1}, {axis, 1, outer * axis}, {}};
  return {slot, dtype, {inner, axis, outer}, {1, inner, inner * axis}, {}};
}

Operand AxisView::per_line(uint32_t slot, DType dtype) const {
  const auto [outer, axis, inner] = split_;
  if (is_rows_ || is_narrow_) return {slot, dtype, {outer}, {1}, {}};
  if (inner == 1) return {slot, dtype, {outer, 1}, {1, outer}, {}};
  return {slot, dtype, {inner, outer}, {1, inner}, {}};
}

std::vector<HostArg> AxisView::args(std::vector<HostArg> inputs, const Operand& result) const {
  inputs.emplace_back(rows_per_group());
  if (is_narrow_) inputs.emplace_back(checked_int32(length()));
  inputs.emplace_back(result);
  return inputs;
}

}  // namespace ballast::kernels
