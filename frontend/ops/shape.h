// Ops that move elements, and ops that make tensors from nothing. Negative axes count from the end.
// Names and semantics are numpy's where numpy has the function, else MindSpore's.
#pragma once

#include "frontend/tensor/operand.h"

#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace ballast::ops {

// ---- the same elements under another shape
Tensor reshape(const Operand& x, Shape shape);  // one extent may be -1
Tensor flatten(const Operand& x);               // [B, ...] -> [B, n]
Tensor expand_dims(const Operand& x, int64_t axis);
Tensor squeeze(const Operand& x, std::vector<int64_t> axes = {});  // empty: all of extent 1

// ---- repeated or in another order
Tensor broadcast_to(const Operand& x, const Shape& shape);
Tensor transpose(const Operand& x, const std::vector<int64_t>& perm = {});  // empty: reversed
Tensor tile(const Operand& x, std::vector<int64_t> repetitions);            // as numpy.tile
Tensor repeat(const Operand& x, int64_t repetitions, int64_t axis);  // each element in its place
Tensor flip(const Operand& x, std::vector<int64_t> axes = {});       // empty: all
Tensor roll(const Operand& x, int64_t shift, int64_t axis);          // around the edge

// ---- parts
// begin:end:strides of the leading axes as in Python; kNone is a bound that is left out.
constexpr int64_t kNone = std::numeric_limits<int64_t>::max();
Tensor strided_slice(const Operand& x, std::vector<int64_t> begin, std::vector<int64_t> end,
                     std::vector<int64_t> strides = {});  // empty: all 1
// `size` elements from `begin` on, one number per axis; size -1: to the end.
Tensor slice(const Operand& x, const std::vector<int64_t>& begin, std::vector<int64_t> size);
// Equal parts, or parts of these sizes.
std::vector<Tensor> split(const Operand& x, int64_t parts, int64_t axis = 0);
std::vector<Tensor> split(const Operand& x, const std::vector<int64_t>& sizes, int64_t axis = 0);

// ---- together
Tensor concat(const std::vector<Tensor>& parts, int64_t axis = 0, Where where = Where::here());
Tensor stack(const std::vector<Tensor>& parts, int64_t axis = 0, Where where = Where::here());
// (before, after) for each axis. mode: "constant" (value), "edge", "reflect", "symmetric" or "wrap"
// as in numpy.pad; the last three take no more than the axis has.
using Paddings = std::vector<std::pair<int64_t, int64_t>>;
Tensor pad(const Operand& x, const Paddings& paddings, double value = 0,
           const std::string& mode = "constant");

// ---- from nothing
Tensor full_like(const Operand& x, double value);
Tensor zeros_like(const Operand& x);
Tensor ones_like(const Operand& x);
// start, start + step, ... below stop (above it for a negative step).
Tensor arange(double start, double stop, double step = 1, DType dtype = DType::kF32,
              Where where = Where::here());

// The elements on and below (above) the diagonal number k of the last two axes; 0 elsewhere.
Tensor tril(const Operand& x, int64_t k = 0);
Tensor triu(const Operand& x, int64_t k = 0);

}  // namespace ballast::ops
