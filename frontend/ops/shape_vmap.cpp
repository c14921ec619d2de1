// The rows of vmap for shape ops and reductions: the new axis in front is one more to keep.
#include "frontend/ops/ops.h"
#include "frontend/transforms/vmap_rules.h"

#include <numeric>

namespace ballast::vmap_rules {

namespace {

// The list of numbers in an attribute with what it says of the new axis put before.
Attrs prefixed(const VmapArgs& args, const std::string& name, const std::vector<int64_t>& front) {
  std::vector<int64_t> all = front;
  const std::vector<int64_t>& own = ints_attr(args.attrs, name);
  all.insert(all.end(), own.begin(), own.end());
  return with_attr(args.attrs, name, all);
}

// Axes count one later; negative ones count from the end as before.
std::vector<int64_t> shifted(std::vector<int64_t> axes) {
  for (int64_t& axis : axes) axis = axis < 0 ? axis : axis + 1;
  return axes;
}

}  // namespace

Tensors broadcast_to(const VmapArgs& args) {
  const auto rank = static_cast<int64_t>(args.outputs[0].shape.size());
  return ops::call("broadcast_to", {aligned(args, 0, rank)}, prefixed(args, "shape", {args.size}));
}

Tensors flip(const VmapArgs& args) {
  return ops::call("flip", args.inputs,
                   with_attr(args.attrs, "axes", shifted(ints_attr(args.attrs, "axes"))));
}

Tensors pad(const VmapArgs& args) {
  return ops::call("pad", args.inputs, prefixed(args, "paddings", {0, 0}));
}

Tensors reshape(const VmapArgs& args) {
  Shape shape = args.outputs[0].shape;
  shape.insert(shape.begin(), args.size);
  return {ops::reshape(args.inputs[0], shape)};
}

Tensors slice(const VmapArgs& args) {
  Attrs attrs = prefixed(args, "begin", {0});
  attrs = with_attr(attrs, "size", ints_attr(prefixed(args, "size", {args.size}), "size"));
  attrs = with_attr(attrs, "strides", ints_attr(prefixed(args, "strides", {1}), "strides"));
  return ops::call("slice", args.inputs, attrs);
}

Tensors slice_grad(const VmapArgs& args) {
  Attrs attrs = prefixed(args, "begin", {0});
  attrs = with_attr(attrs, "shape", ints_attr(prefixed(args, "shape", {args.size}), "shape"));
  attrs = with_attr(attrs, "strides", ints_attr(prefixed(args, "strides", {1}), "strides"));
  return ops::call("slice_grad", args.inputs, attrs);
}

Tensors transpose(const VmapArgs& args) {
  std::vector<int64_t> perm{0};
  for (int64_t axis : ints_attr(args.attrs, "perm")) perm.push_back(axis + 1);
  return {ops::transpose(args.inputs[0], perm)};
}

Tensors reduce(const VmapArgs& args) {
  const Tensor& x = args.inputs[0];
  if (x.rank() == 1) return {x};  // a scalar of its own
  std::vector<int64_t> axes;
  if (const AttrValue* given = find_attr(args.attrs, "axes")) {
    axes = shifted(std::get<std::vector<int64_t>>(*given));
  }
  if (axes.empty()) {
    axes.resize(static_cast<size_t>(x.rank() - 1));
    std::iota(axes.begin(), axes.end(), 1);
  }
  return ops::call(args.primitive, {x}, with_attr(args.attrs, "axes", axes));
}

}  // namespace ballast::vmap_rules
