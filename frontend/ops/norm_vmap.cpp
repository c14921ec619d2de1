// The rows of vmap for normalisations over trailing axes. A gamma or beta that differs by example
// is applied outside of the op, and the gradients of both, sums over an example, are taken outside
// too. (Those by channel have the row vmap_rules::channels.)
#include "frontend/ops/ops.h"
#include "frontend/transforms/vmap_rules.h"

#include <numeric>

namespace ballast::vmap_rules {

namespace {

Tensor f32(const Tensor& x) { return ops::cast(x, DType::kF32); }

int64_t own_axis(const VmapArgs& args, size_t x) {
  const int64_t axis = int_attr_or(args.attrs, "begin_norm_axis", -1);
  return axis < 0 ? axis + static_cast<int64_t>(own_shape(args, x).size()) : axis;
}

Attrs with_axis(const VmapArgs& args, int64_t axis) {
  return with_attr(args.attrs, "begin_norm_axis", axis + 1);
}

// Operand i of the op if all examples share it, else what leaves the op without it.
Tensor shared_or(const VmapArgs& args, size_t i, double neutral) {
  if (!args.is_mapped[i]) return args.inputs[i];
  return Tensor::full(own_shape(args, i), neutral, args.inputs[i].dtype());
}

// Sums over an example's own axes before `axis`.
Tensor sum_of_example(const Tensor& x, int64_t axis, DType dtype) {
  std::vector<int64_t> axes(static_cast<size_t>(axis));
  std::iota(axes.begin(), axes.end(), 1);
  return ops::cast(axes.empty() ? x : ops::reduce_sum(x, axes), dtype);
}

// dx by the op, dgamma and perhaps dbeta by hand; `normal` is what gamma multiplies.
Tensors gradients(const VmapArgs& args, Tensors inputs, const Tensor& normal, bool has_beta) {
  const int64_t axis = own_axis(args, 1), rank = inputs[1].rank() - 1;
  const Tensor dy = inputs[0];
  const DType dtype = args.inputs[2].dtype();
  if (args.is_mapped[2]) inputs[0] = ops::cast(dy * aligned(args, 2, rank), dy.dtype());
  inputs[2] = shared_or(args, 2, 1);
  Tensors results = {ops::call(args.primitive, inputs, with_axis(args, axis))[0],
                     sum_of_example(f32(dy) * normal, axis, dtype)};
  if (has_beta) results.push_back(sum_of_example(f32(dy), axis, dtype));
  return results;
}

}  // namespace

Tensors layer_norm(const VmapArgs& args) {
  const Tensors inputs = {mapped(args, 0), shared_or(args, 1, 1),
                          args.is_mapped[1]
                              ? Tensor::zeros(own_shape(args, 2), args.inputs[2].dtype())
                              : shared_or(args, 2, 0)};
  Tensors results = ops::call("layer_norm", inputs, with_axis(args, own_axis(args, 0)));
  const int64_t rank = inputs[0].rank() - 1;
  if (args.is_mapped[1]) results[0] = results[0] * aligned(args, 1, rank);
  if (args.is_mapped[1] || args.is_mapped[2]) results[0] = results[0] + aligned(args, 2, rank);
  return results;
}

// Operands: dy, x, gamma, mean, rstd.
Tensors layer_norm_grad(const VmapArgs& args) {
  const Tensors inputs = {mapped(args, 0), mapped(args, 1), Tensor(), mapped(args, 3),
                          mapped(args, 4)};
  return gradients(args, inputs, (f32(inputs[1]) - inputs[3]) * inputs[4], true);
}

Tensors rms_norm(const VmapArgs& args) {
  const Tensors inputs = {mapped(args, 0), shared_or(args, 1, 1)};
  Tensors results = ops::call("rms_norm", inputs, with_axis(args, own_axis(args, 0)));
  if (args.is_mapped[1]) results[0] = results[0] * aligned(args, 1, inputs[0].rank() - 1);
  return results;
}

// Operands: dy, x, gamma, rstd.
Tensors rms_norm_grad(const VmapArgs& args) {
  const Tensors inputs = {mapped(args, 0), mapped(args, 1), Tensor(), mapped(args, 3)};
  return gradients(args, inputs, f32(inputs[1]) * inputs[3], false);
}

}  // namespace ballast::vmap_rules
