// The rows of vmap for index ops. Where the indices differ by example, the examples' tables lie
// one after the other as one table, which the indices of all of them count through.
#include "frontend/ops/ops.h"
#include "frontend/transforms/vmap_rules.h"

namespace ballast::vmap_rules {

namespace {

int64_t axis_of(const VmapArgs& args) { return int_attr_or(args.attrs, "axis", 0); }

// Own indices into `extent` rows, mapped, as indices into the rows of all examples. What lies
// outside of its own table stays outside.
Tensor into_all(const VmapArgs& args, size_t i, int64_t extent) {
  const Tensor own = mapped(args, i);
  const Tensor wrapped = ops::select(ops::less(own, 0), own + extent, own);
  const Tensor is_inside =
      ops::logical_and(ops::greater_equal(wrapped, 0), ops::less(wrapped, extent));
  Shape column(own.shape().size(), 1);
  column[0] = args.size;
  const Tensor numbers = ops::arange(0, static_cast<double>(args.size), 1, DType::kI32);
  const Tensor first = ops::reshape(ops::cast(numbers, own.dtype()), column) * extent;
  return ops::select(is_inside, wrapped + first, args.size * extent);
}

// Gathered along own axis `axis`, the indices' axes stand in its place; `rank` of them.
// [B, indices, before, after] <-> [B, before, indices, after].
Tensor indices_to_front(Tensor x, int64_t axis, int64_t rank) {
  for (int64_t i = 0; i < rank; ++i) x = move_axis(x, axis + 1 + i, 1 + i);
  return x;
}
Tensor indices_to_place(Tensor x, int64_t axis, int64_t rank) {
  for (int64_t i = rank; i-- > 0;) x = move_axis(x, 1 + i, axis + 1 + i);
  return x;
}

int64_t from_front(int64_t axis, size_t rank) {
  return axis < 0 ? axis + static_cast<int64_t>(rank) : axis;
}

}  // namespace

Tensors gather(const VmapArgs& args) {
  const Shape own = own_shape(args, 0);
  const int64_t axis = from_front(axis_of(args), own.size());
  if (!args.is_mapped[1]) {
    return {ops::gather(args.inputs[0], args.inputs[1], axis + 1)};
  }
  if (!args.is_mapped[0]) {
    return {move_axis(ops::gather(args.inputs[0], args.inputs[1], axis), axis, 0)};
  }
  const int64_t extent = own[static_cast<size_t>(axis)];
  const Tensor table = merge(move_axis(args.inputs[0], axis + 1, 1));
  const Tensor rows = ops::gather(table, into_all(args, 1, extent), 0);
  return {indices_to_place(rows, axis, args.inputs[1].rank() - 1)};
}

// Operands: indices, dy.
Tensors gather_grad(const VmapArgs& args) {
  Shape shape = ints_attr(args.attrs, "shape");
  const int64_t axis = from_front(axis_of(args), shape.size());
  if (!args.is_mapped[0]) {
    shape.insert(shape.begin(), args.size);
    return ops::call("gather_grad", args.inputs, {{"shape", shape}, {"axis", axis + 1}});
  }
  const int64_t extent = shape[static_cast<size_t>(axis)];
  const Tensor dy = indices_to_front(mapped(args, 1), axis, args.inputs[0].rank() - 1);
  shape.erase(shape.begin() + axis);
  shape.insert(shape.begin(), args.size * extent);
  const Tensor table = ops::call("gather_grad", {into_all(args, 0, extent), dy},
                                 {{"shape", shape}, {"axis", int64_t{0}}})[0];
  return {move_axis(unmerge(table, args.size), 1, axis + 1)};
}

Tensors gather_elements_grad(const VmapArgs& args) {
  Shape shape = ints_attr(args.attrs, "shape");
  const int64_t axis = from_front(axis_of(args), shape.size());
  shape.insert(shape.begin(), args.size);
  return ops::call("gather_elements_grad", {mapped(args, 0), mapped(args, 1)},
                   {{"shape", shape}, {"axis", axis + 1}});
}

// Operands: x, indices, updates.
Tensors index_add(const VmapArgs& args) {
  const Shape own = own_shape(args, 0);
  const int64_t axis = from_front(axis_of(args), own.size());
  if (!args.is_mapped[1]) {
    return {ops::index_add(mapped(args, 0), args.inputs[1], mapped(args, 2), axis + 1)};
  }
  const int64_t extent = own[static_cast<size_t>(axis)];
  const Tensor table = merge(move_axis(mapped(args, 0), axis + 1, 1));
  const Tensor updates = indices_to_front(mapped(args, 2), axis, args.inputs[1].rank() - 1);
  const Tensor sums = ops::index_add(table, into_all(args, 1, extent), updates, 0);
  return {move_axis(unmerge(sums, args.size), 1, axis + 1)};
}

}  // namespace ballast::vmap_rules
