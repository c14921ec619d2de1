// Softmax and log-softmax along an axis (MindSpore's Softmax and LogSoftmax), softmax cross entropy
// with integer labels (its SparseSoftmaxCrossEntropyWithLogits before the reduction, with the label
// smoothing of its CrossEntropyLoss), and their gradients.
#include "graph/op.h"

namespace ballast::graph {

using device::Code;
using device::fail;
using kernels::DeviceClass;

namespace {

int64_t axis_of(const OpCall& call) {
  const int64_t axis = int_attr(call.attrs, "axis");
  const auto rank = static_cast<int64_t>(call.inputs[0].shape.size());
  const int64_t positive = axis < 0 ? axis + rank : axis;
  if (positive < 0 || positive >= rank) {
    fail(Code::kInvalidArgument, "axis {} is out of range for rank {}", axis, rank);
  }
  return positive;
}

void check_f32(const OpCall& call, size_t input) {
  if (call.inputs[input].dtype != DType::kF32) {
    fail(Code::kUnimplemented, "has no kernel for {}", name_of(call.inputs[input].dtype));
  }
}

OpDef softmax(const std::string& name) {
  OpDef op;
  op.name = name;
  op.attrs = {{"axis", int64_t{-1}}};
  op.infer = [](const OpCall& call) -> std::vector<TensorType> {
    check_f32(call, 0);
    axis_of(call);
    return {call.inputs[0]};
  };
  op.plan = [name](DeviceClass device_class, const OpCall& call, const std::vector<TensorType>&) {
    return kernels::plan_softmax(device_class, name, call.inputs[0].shape, axis_of(call));
  };
  return op;
}

OpDef softmax_grad(const std::string& name) {
  OpDef op;
  op.name = name + "_grad";
  op.min_inputs = op.max_inputs = 2;
  op.attrs = {{"axis", int64_t{-1}}};
  op.infer = [](const OpCall& call) -> std::vector<TensorType> {
    check_f32(call, 0);
    axis_of(call);
    if (call.inputs[1] != call.inputs[0]) {
      fail(Code::kInvalidArgument, "y (input 1) needs the type of dy, {}",
           to_string(call.inputs[0]));
    }
    return {call.inputs[0]};
  };
  op.plan = [name](DeviceClass device_class, const OpCall& call, const std::vector<TensorType>&) {
    return kernels::plan_softmax_grad(device_class, name, call.inputs[0].shape, axis_of(call));
  };
  return op;
}

void check_logits(const TensorType& logits, const TensorType& labels) {
  if (logits.dtype != DType::kF32 || logits.shape.size() != 2) {
    fail(Code::kInvalidArgument, "logits need f32[batch, classes]");
  }
  if (logits.shape[1] == 0) fail(Code::kInvalidArgument, "logits have no classes");
  if (labels.dtype != DType::kI32 || labels.shape != Shape{logits.shape[0]}) {
    fail(Code::kInvalidArgument, "labels need i32[{}]", logits.shape[0]);
  }
}

float smoothing_of(const OpCall& call) {
  const double smoothing = float_attr(call.attrs, "label_smoothing");
  if (!(smoothing >= 0 && smoothing <= 1)) {
    fail(Code::kInvalidArgument, "label_smoothing is {}, expected 0 to 1", smoothing);
  }
  return static_cast<float>(smoothing);
}

OpDef cross_entropy() {
  OpDef op;
  op.name = "softmax_cross_entropy";
  op.min_inputs = op.max_inputs = 2;
  op.attrs = {{"label_smoothing", 0.0}};
  op.infer = [](const OpCall& call) -> std::vector<TensorType> {
    check_logits(call.inputs[0], call.inputs[1]);
    smoothing_of(call);
    return {{DType::kF32, {call.inputs[0].shape[0]}}};
  };
  op.plan = [](DeviceClass device_class, const OpCall& call, const std::vector<TensorType>&) {
    const Shape& shape = call.inputs[0].shape;
    return kernels::plan_softmax_cross_entropy(device_class, shape[0], shape[1],
                                               smoothing_of(call));
  };
  return op;
}

OpDef cross_entropy_grad() {
  OpDef op;
  op.name = "softmax_cross_entropy_grad";
  op.min_inputs = op.max_inputs = 3;
  op.attrs = {{"label_smoothing", 0.0}};
  op.infer = [](const OpCall& call) -> std::vector<TensorType> {
    check_logits(call.inputs[1], call.inputs[2]);
    smoothing_of(call);
    if (call.inputs[0] != TensorType{DType::kF32, {call.inputs[1].shape[0]}}) {
      fail(Code::kInvalidArgument, "dloss needs f32[{}]", call.inputs[1].shape[0]);
    }
    return {call.inputs[1]};
  };
  op.plan = [](DeviceClass device_class, const OpCall& call, const std::vector<TensorType>&) {
    const Shape& shape = call.inputs[1].shape;
    return kernels::plan_softmax_cross_entropy_grad(device_class, shape[0], shape[1],
                                                    smoothing_of(call));
  };
  return op;
}

}  // namespace

std::vector<OpDef> softmax_ops() {
  return {softmax("softmax"),          softmax_grad("softmax"), softmax("log_softmax"),
          softmax_grad("log_softmax"), cross_entropy(),         cross_entropy_grad()};
}

}  // namespace ballast::graph
