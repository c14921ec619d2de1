// The rows of vmap for random ops. One key for all examples draws the same numbers for each; keys
// that differ are drawn from one after the other.
#include "frontend/ops/ops.h"
#include "frontend/transforms/vmap_rules.h"

namespace ballast::vmap_rules {

// Operands: x, key.
Tensors dropout(const VmapArgs& args) {
  const double keep = float_attr(args.attrs, "keep_prob", 0.5);
  const Attrs attrs = {{"shape", args.outputs[0].shape}, {"p", keep}};
  const std::vector<Tensor> keys = {args.inputs[1]};
  const std::vector<bool> is_mapped = {args.is_mapped[1]};
  const std::vector<TensorType> masks = {{DType::kBool, args.outputs[0].shape}};
  const Tensor mask = args.is_mapped[1]
                          ? unroll({"bernoulli", attrs, keys, is_mapped, masks, args.size, {}})[0]
                          : ops::call("bernoulli", keys, attrs)[0];
  const Tensor x = mapped(args, 0);
  return {ops::select(mask, x / keep, 0.0f)};
}

Tensors random_advance(const VmapArgs& args) {
  const std::vector<int64_t> step = {0, int_attr(args.attrs, "blocks")};
  return {args.inputs[0] + Tensor::on_host(step, {2})};
}

}  // namespace ballast::vmap_rules
