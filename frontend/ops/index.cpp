#include "frontend/ops/index.h"

#include "frontend/ops/call.h"
#include "frontend/ops/ops.h"

namespace ballast::ops {

namespace {

Tensor at_axis(const char* op, const std::vector<Tensor>& inputs, int64_t axis,
               const Where& where) {
  return apply_primitive(op, inputs, {{"axis", from_start(axis, inputs[0].rank())}}, where)[0];
}

}  // namespace

Tensor gather(const Operand& x, const Operand& indices, int64_t axis) {
  return at_axis("gather", {x.tensor(), indices.tensor()}, axis, x.where());
}

Tensor index_select(const Operand& x, int64_t axis, const Operand& indices) {
  const Tensor picks = indices.tensor();
  if (picks.rank() != 1) {
    fail(BALLAST_INVALID_ARGUMENT, "[index_select] indices are {}, expected rank 1 (at {})",
         to_string(picks.type()), to_string(CallScope::resolve(x.where())));
  }
  return gather(x, picks, axis);
}

Tensor take(const Operand& x, const Operand& indices) {
  CallScope scope(x.where());
  return gather(reshape(x, {-1}), indices, 0);
}

Tensor take(const Operand& x, const Operand& indices, int64_t axis) {
  return gather(x, indices, axis);
}

Tensor embedding(const Operand& table, const Operand& indices,
                 std::optional<int64_t> padding_index) {
  CallScope scope(table.where());
  const Tensor rows = table.tensor(), picks = indices.tensor();
  Tensor result = gather(rows, picks, 0);
  if (!padding_index || rows.rank() < 1) return result;
  Shape columns = picks.shape();
  columns.resize(result.shape().size(), 1);
  const int64_t count = rows.shape()[0], padding = from_start(*padding_index, count);
  const Tensor wrapped = select(less(picks, 0), picks + count, picks);
  return select(reshape(equal(wrapped, padding), columns), stop_gradient(result), result);
}

Tensor gather_elements(const Operand& x, const Operand& indices, int64_t axis) {
  return at_axis("gather_elements", {x.tensor(), indices.tensor()}, axis, x.where());
}

Tensor gather_nd(const Operand& x, const Operand& indices) {
  CallScope scope(x.where());
  const Tensor table = x.tensor(), picks = indices.tensor();
  const int64_t depth = picks.rank() == 0 ? 0 : picks.shape().back();
  if (depth < 1 || depth > table.rank()) {
    fail(BALLAST_INVALID_ARGUMENT,
         "[gather_nd] the last axis of indices {} does not count through axes of {} (at {})",
         to_string(picks.type()), to_string(table.type()),
         to_string(CallScope::resolve(x.where())));
  }
  Shape places(picks.shape().begin(), picks.shape().end() - 1);
  Tensor flat, is_inside;
  int64_t rows = 1;
  for (int64_t d = 0; d < depth; ++d) {
    const int64_t extent = table.shape()[static_cast<size_t>(d)];
    std::vector<int64_t> begin(picks.shape().size(), 0), size = picks.shape();
    begin.back() = d;
    size.back() = 1;
    const Tensor number = reshape(slice(picks, begin, size), places);
    const Tensor wrapped = select(less(number, 0), number + extent, number);
    const Tensor fits = logical_and(greater_equal(wrapped, 0), less(wrapped, extent));
    flat = d == 0 ? wrapped : flat * extent + wrapped;
    is_inside = d == 0 ? fits : logical_and(is_inside, fits);
    rows *= extent;
  }
  Shape rest{rows};
  rest.insert(rest.end(), table.shape().begin() + depth, table.shape().end());
  return gather(reshape(table, rest), select(is_inside, flat, rows), 0);
}

Tensor index_add(const Operand& x, const Operand& indices, const Operand& updates, int64_t axis) {
  const Tensor table = x.tensor();
  return at_axis("index_add", {table, indices.tensor(), updates.as(table.dtype())}, axis,
                 x.where());
}

Tensor scatter_add(const Operand& x, const Operand& indices, const Operand& updates, int64_t axis) {
  const Tensor table = x.tensor();
  return at_axis("scatter_add", {table, indices.tensor(), updates.as(table.dtype())}, axis,
                 x.where());
}

Tensor one_hot(const Operand& indices, int64_t depth, double on, double off, int64_t axis,
               DType dtype) {
  const Tensor picks = indices.tensor();
  return apply_primitive("one_hot", {picks},
                         {{"depth", depth},
                          {"axis", from_start(axis, picks.rank() + 1)},
                          {"on", on},
                          {"off", off},
                          {"dtype", static_cast<int64_t>(dtype)}},
                         indices.where())[0];
}

Tensor where(const Operand& condition, const Operand& a, const Operand& b) {
  return select(condition, a, b);
}

Tensor masked_fill(const Operand& x, const Operand& mask, const Operand& value) {
  return select(mask, value, x);
}

}  // namespace ballast::ops
