// Optimizer steps over lists of tensors, as pure functions: a graph that updates states with their
// results runs them in place. Formulas: kernels/optimizer/optimizer.h. MindSpore's operators of the
// same name, but for the order of operands: of every tensor in turn param, states, gradient; then
// the scalars.
#include "graph/op.h"
#include "kernels/optimizer/step_rules.h"

namespace ballast::graph {

using device::Code;
using device::fail;
using kernels::DeviceClass;
using kernels::StepRule;

namespace {

constexpr size_t kMaxTensors = 64;

std::vector<int64_t> sizes_of(const std::vector<TensorType>& inputs, size_t count, size_t stride) {
  std::vector<int64_t> sizes;
  for (size_t t = 0; t < count; ++t) sizes.push_back(inputs[t * stride].elements());
  return sizes;
}

struct StepOp {
  std::string name;
  std::string rule;
  std::string nesterov_rule;  // of the attribute use_nesterov; empty where there is none
  std::vector<std::string> tensors, scalars;  // what messages call them
  bool has_f32_states = false;                // also beside bf16 and f16 parameters

  size_t ins() const { return tensors.size(); }
  size_t outs() const { return 1 + kernels::step_rule(rule).states; }
  size_t count(const OpCall& call) const { return (call.inputs.size() - scalars.size()) / ins(); }

  std::vector<TensorType> infer(const OpCall& call) const {
    const size_t first_scalar = ins() * count(call);
    if (first_scalar + scalars.size() != call.inputs.size()) {
      fail(Code::kInvalidArgument, "takes {} inputs per tensor and {} scalars, got {} inputs",
           ins(), scalars.size(), call.inputs.size());
    }
    std::vector<TensorType> outputs;
    for (size_t i = 0; i < first_scalar; ++i) {
      const size_t at = i % ins();
      const TensorType& param = call.inputs[i - at];
      if (param.dtype != DType::kF32) {
        fail(Code::kUnimplemented, "has no kernel for {}", name_of(param.dtype));
      }
      if (call.inputs[i] != param) {
        fail(Code::kInvalidArgument, "{} (input {}) needs the parameter's type {}", tensors[at], i,
             to_string(param));
      }
      if (at < outs()) outputs.push_back(param);
    }
    for (size_t k = 0; k < scalars.size(); ++k) {
      if (call.inputs[first_scalar + k] != TensorType{DType::kF32, {}}) {
        fail(Code::kInvalidArgument, "{} (input {}) needs f32[]", scalars[k], first_scalar + k);
      }
    }
    return outputs;
  }
};

OpDef make_op(const StepOp& step) {
  OpDef op;
  op.name = step.name;
  op.min_inputs = step.ins() + step.scalars.size();
  op.max_inputs = step.ins() * kMaxTensors + step.scalars.size();
  if (!step.nesterov_rule.empty()) op.attrs = {{"use_nesterov", int64_t{0}}};
  for (size_t t = 0; t < kMaxTensors; ++t) {
    for (size_t k = 0; k < step.outs(); ++k) {
      op.in_place.push_back({t * step.outs() + k, t * step.ins() + k});
      if (step.has_f32_states && k > 0) op.f32_outputs.push_back(t * step.outs() + k);
    }
  }
  // Where the scalars stand depends on the number of tensors.
  for (size_t i = 1; i < op.max_inputs; ++i) op.f32_inputs.push_back(i);
  op.infer = [step](const OpCall& call) { return step.infer(call); };
  op.plan = [step](DeviceClass device_class, const OpCall& call, const std::vector<TensorType>&) {
    const bool is_nesterov =
        !step.nesterov_rule.empty() && int_attr(call.attrs, "use_nesterov") != 0;
    return kernels::plan_step(device_class, is_nesterov ? step.nesterov_rule : step.rule,
                              sizes_of(call.inputs, step.count(call), step.ins()));
  };
  return op;
}

// All tensors to one scalar.
OpDef list_op(const std::string& name, DType result,
              Plan (*plan)(DeviceClass, const std::vector<int64_t>&)) {
  OpDef op;
  op.name = name;
  op.max_inputs = kMaxTensors;
  if (result == DType::kF32) op.f32_outputs = {0};
  for (size_t i = 1; i < op.max_inputs; ++i) op.f32_inputs.push_back(i);
  op.infer = [result](const OpCall& call) -> std::vector<TensorType> {
    for (const TensorType& input : call.inputs) {
      if (input.dtype != DType::kF32) {
        fail(Code::kUnimplemented, "has no kernel for {}", name_of(input.dtype));
      }
    }
    return {{result, {}}};
  };
  op.plan = [plan](DeviceClass device_class, const OpCall& call, const std::vector<TensorType>&) {
    return plan(device_class, sizes_of(call.inputs, call.inputs.size(), 1));
  };
  return op;
}

}  // namespace

std::vector<OpDef> optimizer_ops() {
  const std::vector<std::string> adam = {"param", "m", "v", "grad"};
  const std::vector<StepOp> steps = {
      {"apply_gradient_descent", "sgd", "", {"param", "grad"}, {"learning rate"}},
      {"apply_momentum",
       "momentum",
       "momentum_nesterov",
       {"param", "accum", "grad"},
       {"learning rate", "momentum"}},
      {"apply_adam",
       "adam",
       "adam_nesterov",
       adam,
       {"beta1_power", "beta2_power", "learning rate", "beta1", "beta2", "epsilon"},
       true},
      {"apply_adam_weight_decay",
       "adam_weight_decay",
       "",
       adam,
       {"learning rate", "beta1", "beta2", "epsilon", "weight_decay"},
       true},
      {"apply_adamw",
       "adamw",
       "",
       adam,
       {"beta1_power", "beta2_power", "learning rate", "beta1", "beta2", "epsilon", "weight_decay"},
       true},
      {"apply_rms_prop",
       "rmsprop",
       "",
       {"param", "mean_square", "moment", "grad"},
       {"learning rate", "rho", "momentum", "epsilon"},
       true},
      {"apply_adagrad", "adagrad", "", {"param", "accum", "grad"}, {"learning rate"}, true},
      {"scale_tensors", "scale", "", {"tensor"}, {"factor"}},
  };
  std::vector<OpDef> ops;
  for (const StepOp& step : steps) ops.push_back(make_op(step));
  ops.push_back(list_op("global_norm", DType::kF32, kernels::plan_global_norm));
  ops.push_back(list_op("all_finite", DType::kBool, kernels::plan_all_finite));
  return ops;
}

}  // namespace ballast::graph
