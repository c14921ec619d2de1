// Reductions over axes.
#pragma once

#include "frontend/operand.h"

#include <vector>

namespace ballast::ops {

using Axes = std::vector<int64_t>;  // empty: all; negative counts from the end

Tensor reduce_sum(const Operand& x, const Axes& axes = {}, bool keep_dims = false);
Tensor reduce_mean(const Operand& x, const Axes& axes = {}, bool keep_dims = false);
Tensor reduce_max(const Operand& x, const Axes& axes = {}, bool keep_dims = false);
Tensor reduce_min(const Operand& x, const Axes& axes = {}, bool keep_dims = false);
Tensor reduce_prod(const Operand& x, const Axes& axes = {}, bool keep_dims = false);
Tensor reduce_any(const Operand& x, const Axes& axes = {}, bool keep_dims = false);
Tensor reduce_all(const Operand& x, const Axes& axes = {}, bool keep_dims = false);
Tensor argmax(const Operand& x, int64_t axis = -1);  // i32; the lowest index wins
Tensor argmin(const Operand& x, int64_t axis = -1);
Tensor sum(const Operand& x, const Axes& axes = {}, bool keep_dims = false);
Tensor mean(const Operand& x, const Axes& axes = {}, bool keep_dims = false);

}  // namespace ballast::ops
