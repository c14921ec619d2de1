// Softmax cross entropy with integer labels (MindSpore's SparseSoftmaxCrossEntropyWithLogits,
// before its reduction) and its gradient.
#include "graph/op.h"

namespace ballast::graph {

using device::Code;
using device::fail;

namespace {

void check_logits(const TensorType& logits, const TensorType& labels) {
  if (logits.dtype != DType::kF32 || logits.shape.size() != 2) {
    fail(Code::kInvalidArgument, "logits need f32[batch, classes]");
  }
  if (logits.shape[1] == 0) fail(Code::kInvalidArgument, "logits have no classes");
  if (labels.dtype != DType::kI32 || labels.shape != Shape{logits.shape[0]}) {
    fail(Code::kInvalidArgument, "labels need i32[{}]", logits.shape[0]);
  }
}

}  // namespace

std::vector<OpDef> softmax_ops() {
  OpDef forward;
  forward.name = "softmax_cross_entropy";
  forward.min_inputs = forward.max_inputs = 2;
  forward.infer = [](const OpCall& call) -> std::vector<TensorType> {
    check_logits(call.inputs[0], call.inputs[1]);
    return {{DType::kF32, {call.inputs[0].shape[0]}}};
  };
  forward.plan = [](kernels::DeviceClass device_class, const OpCall& call,
                    const std::vector<TensorType>&) {
    const Shape& shape = call.inputs[0].shape;
    return kernels::plan_softmax_cross_entropy(device_class, shape[0], shape[1]);
  };

  OpDef backward;
  backward.name = "softmax_cross_entropy_grad";
  backward.min_inputs = backward.max_inputs = 3;
  backward.infer = [](const OpCall& call) -> std::vector<TensorType> {
    check_logits(call.inputs[1], call.inputs[2]);
    if (call.inputs[0] != TensorType{DType::kF32, {call.inputs[1].shape[0]}}) {
      fail(Code::kInvalidArgument, "dloss needs f32[{}]", call.inputs[1].shape[0]);
    }
    return {call.inputs[1]};
  };
  backward.plan = [](kernels::DeviceClass device_class, const OpCall& call,
                     const std::vector<TensorType>&) {
    const Shape& shape = call.inputs[1].shape;
    return kernels::plan_softmax_cross_entropy_grad(device_class, shape[0], shape[1]);
  };
  return {forward, backward};
}

}  // namespace ballast::graph
