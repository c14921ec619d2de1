// Ops that pick elements by index (i32 or i64). Negative indices count from the end; what lies
// outside reads as 0 and is not written.
#pragma once

#include "frontend/tensor/operand.h"

#include <optional>
#include <vector>

namespace ballast::ops {

// x[..., indices, ...]: the axes of `indices` take the place of `axis` (MindSpore's Gather).
Tensor gather(const Operand& x, const Operand& indices, int64_t axis = 0);
Tensor index_select(const Operand& x, int64_t axis, const Operand& indices);  // indices of rank 1
Tensor take(const Operand& x, const Operand& indices);                        // of x laid out flat
Tensor take(const Operand& x, const Operand& indices, int64_t axis);
// The rows of `table` [V, D]. Row `padding_index` gets no gradient.
Tensor embedding(const Operand& table, const Operand& indices,
                 std::optional<int64_t> padding_index = std::nullopt);
// Indices of x's rank, one for each element of the result (numpy.take_along_axis).
Tensor gather_elements(const Operand& x, const Operand& indices, int64_t axis);
// The last axis of `indices` counts through the leading axes of x.
Tensor gather_nd(const Operand& x, const Operand& indices);

// x with `updates` (of the shape that gather would give) added to its rows.
Tensor index_add(const Operand& x, const Operand& indices, const Operand& updates,
                 int64_t axis = 0);
// The same for gather_elements.
Tensor scatter_add(const Operand& x, const Operand& indices, const Operand& updates, int64_t axis);

// A new axis of extent `depth`: `on` at the index, `off` elsewhere. Indices outside of [0, depth),
// negative ones too, have no `on`.
Tensor one_hot(const Operand& indices, int64_t depth, double on = 1, double off = 0,
               int64_t axis = -1, DType dtype = DType::kF32);

Tensor where(const Operand& condition, const Operand& a, const Operand& b);  // as select
Tensor masked_fill(const Operand& x, const Operand& mask, const Operand& value);

}  // namespace ballast::ops
