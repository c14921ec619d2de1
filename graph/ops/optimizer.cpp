// Optimizer steps: ApplyGradientDescent and ApplyMomentum of MindSpore, as pure functions. A graph
// that updates a state with their result runs them in place.
#include "graph/op.h"

namespace ballast::graph {

using device::Code;
using device::fail;

namespace {

void check_like_param(const OpCall& call, size_t input, const char* what) {
  if (call.inputs[0].dtype != DType::kF32) {
    fail(Code::kUnimplemented, "has no kernel for {}", name_of(call.inputs[0].dtype));
  }
  if (call.inputs[input] != call.inputs[0]) {
    fail(Code::kInvalidArgument, "{} (input {}) needs the parameter's type {}", what, input,
         to_string(call.inputs[0]));
  }
}

void check_scalar(const OpCall& call, size_t input, const char* what) {
  if (call.inputs[input] != TensorType{DType::kF32, {}}) {
    fail(Code::kInvalidArgument, "{} (input {}) needs f32[]", what, input);
  }
}

}  // namespace

std::vector<OpDef> optimizer_ops() {
  OpDef sgd;
  sgd.name = "apply_gradient_descent";
  sgd.min_inputs = sgd.max_inputs = 3;
  sgd.in_place = {{0, 0}};
  sgd.f32_inputs = {2};
  sgd.infer = [](const OpCall& call) -> std::vector<TensorType> {
    check_like_param(call, 1, "grad");
    check_scalar(call, 2, "learning rate");
    return {call.inputs[0]};
  };
  sgd.plan = [](kernels::DeviceClass device_class, const OpCall& call,
                const std::vector<TensorType>&) {
    return kernels::plan_sgd(device_class, call.inputs[0].elements());
  };

  OpDef momentum;
  momentum.name = "apply_momentum";
  momentum.min_inputs = momentum.max_inputs = 5;
  momentum.attrs = {{"use_nesterov", int64_t{0}}};
  momentum.in_place = {{0, 0}, {1, 1}};
  momentum.f32_inputs = {3, 4};
  momentum.infer = [](const OpCall& call) -> std::vector<TensorType> {
    check_like_param(call, 1, "accum");
    check_like_param(call, 2, "grad");
    check_scalar(call, 3, "learning rate");
    check_scalar(call, 4, "momentum");
    return {call.inputs[0], call.inputs[0]};
  };
  momentum.plan = [](kernels::DeviceClass device_class, const OpCall& call,
                     const std::vector<TensorType>&) {
    return kernels::plan_momentum(device_class, call.inputs[0].elements(),
                                  int_attr(call.attrs, "use_nesterov") != 0);
  };
  return {sgd, momentum};
}

}  // namespace ballast::graph
