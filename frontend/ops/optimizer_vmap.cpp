// The rows of vmap for optimizer ops, which take lists of tensors and then scalars.
#include "frontend/ops/ops.h"
#include "frontend/transforms/vmap_rules.h"

#include <map>
#include <numeric>

namespace ballast::vmap_rules {

namespace {

size_t scalar_count(const std::string& primitive) {
  static const auto* counts = new std::map<std::string, size_t>{
      {"apply_gradient_descent", 1},  {"apply_momentum", 2}, {"apply_adam", 6},
      {"apply_adam_weight_decay", 5}, {"apply_adamw", 7},    {"apply_rms_prop", 4},
      {"apply_adagrad", 1},           {"scale_tensors", 1}};
  return counts->at(primitive);
}

// The axes of an example.
ops::Axes own_axes(const Tensor& x) {
  ops::Axes axes(static_cast<size_t>(x.rank() - 1));
  std::iota(axes.begin(), axes.end(), 1);
  return axes;
}

}  // namespace

Tensors optimizer_step(const VmapArgs& args) {
  const size_t tensors = args.inputs.size() - scalar_count(args.primitive);
  Tensors inputs;
  for (size_t i = 0; i < args.inputs.size(); ++i) {
    if (i >= tensors && args.is_mapped[i]) return unroll(args);
    inputs.push_back(i < tensors ? mapped(args, i) : args.inputs[i]);
  }
  return ops::call(args.primitive, inputs, args.attrs);
}

Tensors global_norm(const VmapArgs& args) {
  Tensor total;
  for (size_t i = 0; i < args.inputs.size(); ++i) {
    const Tensor x = ops::square(ops::cast(mapped(args, i), DType::kF32));
    const Tensor sum = x.rank() == 1 ? x : ops::reduce_sum(x, own_axes(x));
    total = total.defined() ? total + sum : sum;
  }
  return {ops::sqrt(total)};
}

Tensors all_finite(const VmapArgs& args) {
  Tensor all;
  for (size_t i = 0; i < args.inputs.size(); ++i) {
    const Tensor x = ops::isfinite(mapped(args, i));
    const Tensor one = x.rank() == 1 ? x : ops::reduce_all(x, own_axes(x));
    all = all.defined() ? ops::logical_and(all, one) : one;
  }
  return {all};
}

}  // namespace ballast::vmap_rules
