// The gradients of optimizer ops. The steps take lists: of every tensor in turn its operands, then
// the scalars. The Adam family, RMSProp and Adagrad have none: nobody differentiates through them.
#include "frontend/ops/ops.h"
#include "frontend/transforms/vjp_rules.h"
#include "frontend/transforms/vmap_rules.h"

namespace ballast {

using namespace vjp_rules;

namespace {

// Adds to the gradient of a scalar.
void add_to(Tensor& sum, const Tensor& more) { sum = sum.defined() ? sum + more : more; }

// param' = param - lr grad
std::vector<Tensor> apply_gradient_descent(const VjpArgs& args) {
  std::vector<Tensor> gradients(args.inputs.size());
  const Tensor& lr = args.inputs.back();
  for (size_t t = 0; t < args.outputs.size(); ++t) {
    const Tensor& dparam = args.cotangents[t];
    if (!dparam.defined()) continue;
    gradients[2 * t] = dparam;
    gradients[2 * t + 1] = -dparam * lr;
    add_to(gradients.back(), -ops::reduce_sum(dparam * args.inputs[2 * t + 1]));
  }
  return gradients;
}

// accum' = m accum + grad; param' = param - lr u, where u = accum', or grad + m accum' (Nesterov).
std::vector<Tensor> apply_momentum(const VjpArgs& args) {
  std::vector<Tensor> gradients(args.inputs.size());
  const size_t scalars = args.inputs.size() - 2;
  const Tensor& lr = args.inputs[scalars];
  const Tensor& m = args.inputs[scalars + 1];
  const bool is_nesterov = int_attr(args.attrs, "use_nesterov") != 0;
  for (size_t t = 0; t < args.outputs.size() / 2; ++t) {
    const Tensor& accum = args.inputs[3 * t + 1];
    const Tensor& grad = args.inputs[3 * t + 2];
    const Tensor& new_accum = args.outputs[2 * t + 1];
    Tensor dparam = or_zero(args.cotangents[2 * t], args.outputs[2 * t]);
    Tensor dnew = or_zero(args.cotangents[2 * t + 1], new_accum);
    Tensor du = -dparam * lr;
    dnew = dnew + (is_nesterov ? du * m : du);
    gradients[3 * t] = dparam;
    gradients[3 * t + 1] = dnew * m;
    gradients[3 * t + 2] = is_nesterov ? dnew + du : dnew;
    Tensor u = is_nesterov ? grad + m * new_accum : new_accum;
    add_to(gradients[scalars], -ops::reduce_sum(dparam * u));
    add_to(gradients[scalars + 1], ops::reduce_sum(dnew * accum));
    if (is_nesterov) add_to(gradients[scalars + 1], ops::reduce_sum(du * new_accum));
  }
  return gradients;
}

std::vector<Tensor> scale_tensors(const VjpArgs& args) {
  std::vector<Tensor> gradients(args.inputs.size());
  for (size_t t = 0; t < args.outputs.size(); ++t) {
    const Tensor& dy = args.cotangents[t];
    if (!dy.defined()) continue;
    gradients[t] = dy * args.inputs.back();
    add_to(gradients.back(), ops::reduce_sum(dy * args.inputs[t]));
  }
  return gradients;
}

std::vector<Tensor> global_norm(const VjpArgs& args) {
  std::vector<Tensor> gradients;
  // 0 where all is 0.
  const Tensor share = g(args) / ops::select(ops::equal(y(args), 0.0f), 1.0f, y(args));
  for (const Tensor& input : args.inputs) gradients.push_back(input * share);
  return gradients;
}

// `rule` on f32 copies: parameters may be narrow where states and scalars are f32.
template <VjpRule rule>
std::vector<Tensor> in_f32(const VjpArgs& args) {
  auto wide = [](std::vector<Tensor> tensors) {
    for (Tensor& tensor : tensors) {
      if (tensor.defined()) tensor = ops::cast(tensor, DType::kF32);
    }
    return tensors;
  };
  return rule({args.attrs, wide(args.inputs), wide(args.outputs), wide(args.cotangents),
               args.bodies, args.wanted, args.residuals});
}

}  // namespace

std::vector<Primitive> optimizer_primitives() {
  return {
      {"apply_gradient_descent", in_f32<apply_gradient_descent>, nullptr,
       vmap_rules::optimizer_step},
      {"apply_momentum", in_f32<apply_momentum>, nullptr, vmap_rules::optimizer_step},
      {"apply_adam", nullptr, nullptr, vmap_rules::optimizer_step},
      {"apply_adam_weight_decay", nullptr, nullptr, vmap_rules::optimizer_step},
      {"apply_adamw", nullptr, nullptr, vmap_rules::optimizer_step},
      {"apply_rms_prop", nullptr, nullptr, vmap_rules::optimizer_step},
      {"apply_adagrad", nullptr, nullptr, vmap_rules::optimizer_step},
      {"scale_tensors", in_f32<scale_tensors>, nullptr, vmap_rules::optimizer_step},
      {"global_norm", in_f32<global_norm>, nullptr, vmap_rules::global_norm},
      {"all_finite", zero, nullptr, vmap_rules::all_finite},
  };
}

}  // namespace ballast
