// Reductions over axes.
#pragma once

#include "frontend/tensor/operand.h"

#include <vector>

namespace ballast::ops {

using Axes = std::vector<int64_t>;  // empty: all; negative counts from the end

// Sums, running ones too, and products of bool and u8 are i32; means, variances and logsumexp of
// what is no float are f32.
Tensor reduce_sum(const Operand& x, const Axes& axes = {}, bool keep_dims = false);
Tensor reduce_mean(const Operand& x, const Axes& axes = {}, bool keep_dims = false);
Tensor reduce_max(const Operand& x, const Axes& axes = {}, bool keep_dims = false);
Tensor reduce_min(const Operand& x, const Axes& axes = {}, bool keep_dims = false);
Tensor reduce_prod(const Operand& x, const Axes& axes = {}, bool keep_dims = false);
// Of numbers their truth.
Tensor reduce_any(const Operand& x, const Axes& axes = {}, bool keep_dims = false);
Tensor reduce_all(const Operand& x, const Axes& axes = {}, bool keep_dims = false);
// i32; the lowest index wins.
Tensor argmax(const Operand& x, int64_t axis = -1, bool keep_dims = false);
Tensor argmin(const Operand& x, int64_t axis = -1, bool keep_dims = false);
// The mean of squared distances from the mean, or with `ddof` their sum over count - ddof.
Tensor reduce_var(const Operand& x, const Axes& axes = {}, int64_t ddof = 0,
                  bool keep_dims = false);
Tensor reduce_std(const Operand& x, const Axes& axes = {}, int64_t ddof = 0,
                  bool keep_dims = false);
Tensor logsumexp(const Operand& x, const Axes& axes = {}, bool keep_dims = false);
// Running sums; exclusive: without the element itself; reverse: from the end.
Tensor cumsum(const Operand& x, int64_t axis, bool exclusive = false, bool reverse = false);
Tensor sum(const Operand& x, const Axes& axes = {}, bool keep_dims = false);
Tensor mean(const Operand& x, const Axes& axes = {}, bool keep_dims = false);

}  // namespace ballast::ops
