// The rows of vmap for convolutions. Images of all examples are more samples of one call; where
// weights differ too, the examples are more groups of channels.
#include "frontend/ops/ops.h"
#include "frontend/transforms/vmap_rules.h"

namespace ballast::vmap_rules {

namespace {

Attrs with_groups(const VmapArgs& args) {
  return with_attr(args.attrs, "group", int_attr_or(args.attrs, "group", 1) * args.size);
}

std::vector<int64_t> scaled(const VmapArgs& args, const std::string& name, size_t axis) {
  std::vector<int64_t> shape = ints_attr(args.attrs, name);
  shape[axis] *= args.size;
  return shape;
}

}  // namespace

// Operands: x, weight, then what the attributes name; a residual is the last.
Tensors conv2d(const VmapArgs& args) {
  const bool has_residual = int_attr_or(args.attrs, "has_residual", 0) != 0;
  const size_t count = args.inputs.size();
  const auto is_image = [&](size_t i) { return i == 0 || (has_residual && i + 1 == count); };
  bool is_shared = true;  // everything but the images
  for (size_t i = 0; i < count; ++i) is_shared = is_shared && (is_image(i) || !args.is_mapped[i]);
  Tensors inputs;
  for (size_t i = 0; i < count; ++i) {
    if (is_shared) {
      inputs.push_back(is_image(i) ? merge(mapped(args, i)) : args.inputs[i]);
    } else {
      inputs.push_back(is_image(i) ? merge_channels(mapped(args, i)) : merge(mapped(args, i)));
    }
  }
  if (is_shared) return {unmerge(ops::call("conv2d", inputs, args.attrs)[0], args.size)};
  return {unmerge_channels(ops::call("conv2d", inputs, with_groups(args))[0], args.size)};
}

// Operands: dy, weight.
Tensors conv2d_input_grad(const VmapArgs& args) {
  if (!args.is_mapped[1]) {
    const Attrs attrs = with_attr(args.attrs, "input_size", scaled(args, "input_size", 0));
    const Tensors inputs = {merge(args.inputs[0]), args.inputs[1]};
    return {unmerge(ops::call("conv2d_input_grad", inputs, attrs)[0], args.size)};
  }
  const Attrs attrs = with_attr(with_groups(args), "input_size", scaled(args, "input_size", 1));
  const Tensors inputs = {merge_channels(mapped(args, 0)), merge(args.inputs[1])};
  return {unmerge_channels(ops::call("conv2d_input_grad", inputs, attrs)[0], args.size)};
}

// Operands: dy, x. Every example has a gradient of its own.
Tensors conv2d_weight_grad(const VmapArgs& args) {
  const Attrs attrs = with_attr(with_groups(args), "weight_size", scaled(args, "weight_size", 0));
  const Tensors inputs = {merge_channels(mapped(args, 0)), merge_channels(mapped(args, 1))};
  return {unmerge(ops::call("conv2d_weight_grad", inputs, attrs)[0], args.size)};
}

}  // namespace ballast::vmap_rules
