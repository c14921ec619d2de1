#include "kernels/reduce/axis.h"

#include "kernels/streaming.h"

#include <algorithm>

namespace ballast::kernels {

namespace {

int64_t product(const Shape& shape, size_t begin, size_t end) {
  int64_t n = 1;
  for (size_t d = begin; d < end; ++d) n *= shape[d];
  return n;
}

}  // namespace

AxisView::AxisView(DeviceClass device_class, int64_t outer, int64_t axis, int64_t inner)
    : device_class_(device_class), outer_(outer), axis_(axis), inner_(inner) {
  // A vector's width, or enough work-items to be worth a group.
  const int64_t shortest = device_class == DeviceClass::kCpu ? 16 : 32;
  is_rows_ = inner == 1 && axis >= shortest;
}

AxisView::AxisView(DeviceClass device_class, const Shape& shape, int64_t axis)
    : AxisView(device_class, product(shape, 0, axis), shape[axis],
               product(shape, axis + 1, shape.size())) {}

int32_t AxisView::rows_per_group() const {
  // Enough per group to hide its start, and at least 16 groups to share between cores.
  constexpr int64_t kElements = 16384, kGroups = 16;
  const int64_t rows = std::min(kElements / std::max<int64_t>(axis_, 1), outer_ / kGroups);
  return static_cast<int32_t>(std::max<int64_t>(rows, 1));
}

SourceRules AxisView::rules() const {
  SourceRules rules = kNoAliases;
  rules.streams = is_rows_ && should_stream(device_class_, outer_, axis_, kStreamedRowsBytes);
  return rules;
}

bool AxisView::is_short() const {
  return is_rows_ && device_class_ == DeviceClass::kCpu && axis_ <= kShortRow;
}

Operand AxisView::tensor(uint32_t slot, DType dtype) const {
  if (is_rows_) return {slot, dtype, {axis_, outer_}, {1, axis_}, {}};
  if (inner_ == 1) return {slot, dtype, {outer_, axis_, 1}, {axis_, 1, outer_ * axis_}, {}};
  return {slot, dtype, {inner_, axis_, outer_}, {1, inner_, inner_ * axis_}, {}};
}

Operand AxisView::per_line(uint32_t slot, DType dtype) const {
  if (is_rows_) return {slot, dtype, {outer_}, {1}, {}};
  if (inner_ == 1) return {slot, dtype, {outer_, 1}, {1, outer_}, {}};
  return {slot, dtype, {inner_, outer_}, {1, inner_}, {}};
}

}  // namespace ballast::kernels
