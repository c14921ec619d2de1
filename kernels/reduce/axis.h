// How the ops along one axis see a dense tensor: [outer, axis, inner], as rows where the axis is
// dense and long enough for vectors, else as columns (axis_recipe.h). Plain values; any thread.
#pragma once

#include "kernels/plan/halide_runtime.h"
#include "kernels/reduce/row_lengths.h"

#include <string>
#include <vector>

namespace ballast::kernels {

// Whether an op has kernels for narrow rows.
enum class NarrowRowsKernels { kNone, kSome };

class AxisView {
 public:
  // `axis` counts from 0.
  AxisView(DeviceClass device_class, const Shape& shape, int64_t axis,
           NarrowRowsKernels narrow = NarrowRowsKernels::kNone);

  bool is_empty() const { return split_.elements() == 0; }
  bool is_rows() const { return is_rows_; }
  bool is_narrow() const { return is_narrow_; }
  int64_t length() const { return split_.axis; }
  // Of a CPU's work-group, or of columns how many times the outer dimension.
  int32_t rows_per_group() const;
  // For kernels that write results of this shape once, from values and not in the buffers of
  // inputs.
  SourceRules rules() const;
  // "rows", "long_rows", "columns" or "narrow_rows": how the kernels' names end.
  // Long rows, which more of a GPU's work-items share, have `long_row` elements and more; by
  // default none that fused kernels take, so that those have the same bits.
  const char* layout(int64_t long_row = kLongestCachedRow + 1) const;
  // Rows on CPUs of which kernels that have such a variant take several at once: "short_rows".
  bool is_short() const;
  const char* short_layout() const { return is_short() ? "short_rows" : layout(); }

  Operand tensor(uint32_t slot, DType dtype = DType::kF32) const;
  // One value by line.
  Operand per_line(uint32_t slot, DType dtype = DType::kF32) const;
  // What kernels take: `inputs`, how many rows a group has and, of narrow ones, their length,
  // `result`.
  std::vector<HostArg> args(std::vector<HostArg> inputs, const Operand& result) const;

 private:
  DeviceClass device_class_;
  AxisSplit split_;
  bool is_rows_;
  bool is_narrow_;  // sixteen rows or more, shorter than a vector, whose kernels take them flat
};

}  // namespace ballast::kernels
