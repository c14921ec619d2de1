// Normalisations: MindSpore's LayerNorm, RmsNorm, GroupNorm and BatchNorm, with their gradients.
// The statistics that come out are a mean and rstd = 1 / sqrt(variance + epsilon).
#include "graph/op.h"

#include <algorithm>

namespace ballast::graph {

using device::Code;
using device::fail;
using kernels::ChannelShape;
using kernels::DeviceClass;

namespace {

constexpr DType kF32 = DType::kF32;

void check_f32(const OpCall& call, size_t input) {
  if (call.inputs[input].dtype != kF32) {
    fail(Code::kUnimplemented, "has no kernel for {}", name_of(call.inputs[input].dtype));
  }
}

void check_input(const OpCall& call, size_t input, const char* what, const Shape& shape) {
  const TensorType wanted{kF32, shape};
  if (call.inputs[input] != wanted) {
    fail(Code::kInvalidArgument, "{} (input {}) needs {}", what, input, to_string(wanted));
  }
}

float epsilon_of(const OpCall& call) {
  const double epsilon = float_attr(call.attrs, "epsilon");
  if (!(epsilon >= 0)) {
    fail(Code::kInvalidArgument, "epsilon is {}, expected 0 or more", epsilon);
  }
  return static_cast<float>(epsilon);
}

// ---- layers: the dimensions from begin_norm_axis on are normalised together

struct LayerShape {
  Shape parameter, statistic;  // the statistics keep the normalised dimensions with extent 1
  int64_t rows = 1, length = 1;
};

LayerShape layer_shape(const OpCall& call, size_t x) {
  const Shape& shape = call.inputs[x].shape;
  const auto rank = static_cast<int64_t>(shape.size());
  int64_t axis = int_attr(call.attrs, "begin_norm_axis");
  if (axis < -rank || axis >= rank) {
    fail(Code::kInvalidArgument, "begin_norm_axis {} is out of range for rank {}", axis, rank);
  }
  if (axis < 0) axis += rank;
  LayerShape result;
  for (int64_t d = 0; d < rank; ++d) {
    (d < axis ? result.rows : result.length) *= shape[d];
    result.statistic.push_back(d < axis ? shape[d] : 1);
    if (d >= axis) result.parameter.push_back(shape[d]);
  }
  if (result.length == 0) fail(Code::kInvalidArgument, "there is nothing to normalise over");
  return result;
}

OpDef layer_op(const std::string& name, size_t inputs, double epsilon) {
  OpDef op;
  op.name = name;
  op.min_inputs = op.max_inputs = inputs;
  op.attrs = {{"begin_norm_axis", int64_t{-1}}};
  if (epsilon > 0) op.attrs.push_back({"epsilon", epsilon});
  return op;
}

OpDef layer_norm() {
  OpDef op = layer_op("layer_norm", 3, 1e-5);
  op.f32_outputs = {1, 2};
  op.infer = [](const OpCall& call) -> std::vector<TensorType> {
    check_f32(call, 0);
    const LayerShape shape = layer_shape(call, 0);
    check_input(call, 1, "gamma", shape.parameter);
    check_input(call, 2, "beta", shape.parameter);
    epsilon_of(call);
    return {call.inputs[0], {kF32, shape.statistic}, {kF32, shape.statistic}};
  };
  op.plan = [](DeviceClass device_class, const OpCall& call, const std::vector<TensorType>&) {
    const LayerShape shape = layer_shape(call, 0);
    return kernels::plan_layer_norm(device_class, shape.rows, shape.length, epsilon_of(call));
  };
  return op;
}

// Inputs dy, x, gamma, mean (unless there is none), rstd.
std::vector<TensorType> infer_layer_grad(const OpCall& call, bool has_mean) {
  check_f32(call, 1);
  const LayerShape shape = layer_shape(call, 1);
  check_input(call, 0, "dy", call.inputs[1].shape);
  check_input(call, 2, "gamma", shape.parameter);
  if (has_mean) check_input(call, 3, "mean", shape.statistic);
  check_input(call, has_mean ? 4 : 3, "rstd", shape.statistic);
  return {call.inputs[1], call.inputs[2]};
}

OpDef layer_norm_grad() {
  OpDef op = layer_op("layer_norm_grad", 5, 0);
  op.f32_inputs = {3, 4};
  op.infer = [](const OpCall& call) -> std::vector<TensorType> {
    std::vector<TensorType> outputs = infer_layer_grad(call, true);
    outputs.push_back(outputs[1]);
    return outputs;
  };
  op.plan = [](DeviceClass device_class, const OpCall& call, const std::vector<TensorType>&) {
    const LayerShape shape = layer_shape(call, 1);
    return kernels::plan_layer_norm_grad(device_class, shape.rows, shape.length);
  };
  return op;
}

OpDef rms_norm() {
  OpDef op = layer_op("rms_norm", 2, 1e-6);
  op.f32_outputs = {1};
  op.infer = [](const OpCall& call) -> std::vector<TensorType> {
    check_f32(call, 0);
    const LayerShape shape = layer_shape(call, 0);
    check_input(call, 1, "gamma", shape.parameter);
    epsilon_of(call);
    return {call.inputs[0], {kF32, shape.statistic}};
  };
  op.plan = [](DeviceClass device_class, const OpCall& call, const std::vector<TensorType>&) {
    const LayerShape shape = layer_shape(call, 0);
    return kernels::plan_rms_norm(device_class, shape.rows, shape.length, epsilon_of(call));
  };
  return op;
}

OpDef rms_norm_grad() {
  OpDef op = layer_op("rms_norm_grad", 4, 0);
  op.f32_inputs = {3};
  op.infer = [](const OpCall& call) { return infer_layer_grad(call, false); };
  op.plan = [](DeviceClass device_class, const OpCall& call, const std::vector<TensorType>&) {
    const LayerShape shape = layer_shape(call, 1);
    return kernels::plan_rms_norm_grad(device_class, shape.rows, shape.length);
  };
  return op;
}

// ---- channels: x[batch, channels, ...]

ChannelShape channel_shape(const OpCall& call, size_t x) {
  const Shape& shape = call.inputs[x].shape;
  if (shape.size() < 2) fail(Code::kInvalidArgument, "x needs rank 2 or more: [N, C, ...]");
  ChannelShape result{shape[0], shape[1], 1};
  for (size_t d = 2; d < shape.size(); ++d) result.inner *= shape[d];
  if (result.channels * result.inner == 0) {
    fail(Code::kInvalidArgument, "there is nothing to normalise over");
  }
  return result;
}

void check_channels(const OpCall& call, size_t first, std::vector<const char*> names,
                    int64_t channels) {
  for (size_t i = 0; i < names.size(); ++i) check_input(call, first + i, names[i], {channels});
}

int64_t groups_of(const OpCall& call, const ChannelShape& shape) {
  const int64_t groups = int_attr(call.attrs, "num_groups");
  if (groups < 1 || shape.channels % groups != 0) {
    fail(Code::kInvalidArgument, "num_groups {} does not divide {} channels", groups,
         shape.channels);
  }
  return groups;
}

OpDef group_norm() {
  OpDef op;
  op.name = "group_norm";
  op.min_inputs = op.max_inputs = 3;
  op.attrs = {{"num_groups", int64_t{1}, /*is_required=*/true}, {"epsilon", 1e-5}};
  op.f32_outputs = {1, 2};
  op.infer = [](const OpCall& call) -> std::vector<TensorType> {
    check_f32(call, 0);
    const ChannelShape shape = channel_shape(call, 0);
    const Shape statistic = {shape.batch, groups_of(call, shape)};
    check_channels(call, 1, {"gamma", "beta"}, shape.channels);
    epsilon_of(call);
    return {call.inputs[0], {kF32, statistic}, {kF32, statistic}};
  };
  op.plan = [](DeviceClass device_class, const OpCall& call, const std::vector<TensorType>&) {
    const ChannelShape shape = channel_shape(call, 0);
    return kernels::plan_group_norm(device_class, shape, groups_of(call, shape), epsilon_of(call));
  };
  return op;
}

OpDef group_norm_grad() {
  OpDef op;
  op.name = "group_norm_grad";
  op.min_inputs = op.max_inputs = 5;
  op.attrs = {{"num_groups", int64_t{1}, /*is_required=*/true}};
  op.f32_inputs = {3, 4};
  op.infer = [](const OpCall& call) -> std::vector<TensorType> {
    check_f32(call, 1);
    const ChannelShape shape = channel_shape(call, 1);
    const Shape statistic = {shape.batch, groups_of(call, shape)};
    check_input(call, 0, "dy", call.inputs[1].shape);
    check_channels(call, 2, {"gamma"}, shape.channels);
    check_input(call, 3, "mean", statistic);
    check_input(call, 4, "rstd", statistic);
    return {call.inputs[1], call.inputs[2], call.inputs[2]};
  };
  op.plan = [](DeviceClass device_class, const OpCall& call, const std::vector<TensorType>&) {
    const ChannelShape shape = channel_shape(call, 1);
    return kernels::plan_group_norm_grad(device_class, shape, groups_of(call, shape));
  };
  return op;
}

OpDef batch_norm() {
  OpDef op;
  op.name = "batch_norm";
  op.min_inputs = op.max_inputs = 5;
  op.attrs = {{"epsilon", 1e-5}, {"momentum", 0.1}};
  op.f32_inputs = {1, 2, 3, 4};
  op.f32_outputs = {1, 2, 3, 4};
  op.infer = [](const OpCall& call) -> std::vector<TensorType> {
    check_f32(call, 0);
    const ChannelShape shape = channel_shape(call, 0);
    check_channels(call, 1, {"gamma", "beta", "running mean", "running variance"}, shape.channels);
    epsilon_of(call);
    if (shape.batch * shape.inner < 2) {
      fail(Code::kInvalidArgument, "a channel needs two elements or more, it has {}",
           shape.batch * shape.inner);
    }
    const TensorType channels{kF32, {shape.channels}};
    return {call.inputs[0], channels, channels, channels, channels};
  };
  op.plan = [](DeviceClass device_class, const OpCall& call, const std::vector<TensorType>&) {
    const auto momentum = static_cast<float>(float_attr(call.attrs, "momentum"));
    return kernels::plan_batch_norm(device_class, channel_shape(call, 0), epsilon_of(call),
                                    momentum);
  };
  return op;
}

OpDef batch_norm_grad() {
  OpDef op;
  op.name = "batch_norm_grad";
  op.min_inputs = op.max_inputs = 5;
  op.f32_inputs = {2, 3, 4};
  op.f32_outputs = {1, 2};
  op.infer = [](const OpCall& call) -> std::vector<TensorType> {
    check_f32(call, 1);
    const ChannelShape shape = channel_shape(call, 1);
    check_input(call, 0, "dy", call.inputs[1].shape);
    check_channels(call, 2, {"gamma", "mean", "rstd"}, shape.channels);
    if (shape.batch == 0) fail(Code::kInvalidArgument, "the batch is empty");
    return {call.inputs[1], call.inputs[2], call.inputs[2]};
  };
  op.plan = [](DeviceClass device_class, const OpCall& call, const std::vector<TensorType>&) {
    return kernels::plan_batch_norm_grad(device_class, channel_shape(call, 1));
  };
  return op;
}

OpDef batch_norm_inference() {
  OpDef op;
  op.name = "batch_norm_inference";
  op.min_inputs = op.max_inputs = 5;
  op.attrs = {{"epsilon", 1e-5}};
  op.f32_inputs = {1, 2, 3, 4};
  op.infer = [](const OpCall& call) -> std::vector<TensorType> {
    check_f32(call, 0);
    const ChannelShape shape = channel_shape(call, 0);
    check_channels(call, 1, {"gamma", "beta", "mean", "variance"}, shape.channels);
    epsilon_of(call);
    return {call.inputs[0]};
  };
  op.plan = [](DeviceClass device_class, const OpCall& call, const std::vector<TensorType>&) {
    return kernels::plan_batch_norm_inference(device_class, channel_shape(call, 0),
                                              epsilon_of(call));
  };
  return op;
}

}  // namespace

std::vector<OpDef> norm_ops() {
  return {layer_norm(),    layer_norm_grad(), rms_norm(),
          rms_norm_grad(), group_norm(),      group_norm_grad(),
          batch_norm(),    batch_norm_grad(), batch_norm_inference()};
}

}  // namespace ballast::graph
