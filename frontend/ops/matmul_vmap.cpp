// The rows of vmap for matrix products and attention: the examples are one more leading dimension.
#include "frontend/ops/ops.h"
#include "frontend/transforms/vmap_rules.h"

#include <algorithm>

namespace ballast::vmap_rules {

Tensors matmul(const VmapArgs& args) {
  if (args.inputs.size() > 2) return unroll(args);  // operands of an epilogue
  const auto rank =
      static_cast<int64_t>(std::max(own_shape(args, 0).size(), own_shape(args, 1).size()));
  return ops::call("matmul", {aligned(args, 0, rank), aligned(args, 1, rank)}, args.attrs);
}

// Of scaled_dot_product_attention and its gradient, whose mask is operand 3 or 6.
Tensors attention(const VmapArgs& args) {
  const bool is_grad = args.primitive == "attention_grad";
  const size_t mask = is_grad ? 6 : 3, q = is_grad ? 1 : 0;
  const auto rank = static_cast<int64_t>(own_shape(args, 1).size());
  Tensors inputs;
  for (size_t i = 0; i < args.inputs.size(); ++i) {
    inputs.push_back(i == mask ? aligned(args, i, rank) : mapped(args, i));
  }
  if (inputs.size() > mask) {
    inputs[mask] = ops::attention_mask(inputs[mask], inputs[q], inputs[q + 1]);
  }
  return ops::call(args.primitive, inputs, args.attrs);
}

}  // namespace ballast::vmap_rules
