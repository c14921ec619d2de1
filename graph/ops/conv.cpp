// 2-D convolution (MindSpore's Conv2D, NCHW) and its two gradients (Conv2DBackpropInput,
// Conv2DBackpropFilter).
#include "graph/ops/window.h"

namespace ballast::graph {

using device::Code;
using device::fail;
using kernels::ConvConfig;
using kernels::ConvEpilogue;

namespace {

void check_tensor(const OpCall& call, size_t number) {
  const TensorType& type = call.inputs[number];
  if (type.dtype != DType::kF32) {
    fail(Code::kUnimplemented, "has no kernel for {}", name_of(type.dtype));
  }
  if (type.shape.size() != 4) {
    fail(Code::kInvalidArgument, "input {} needs rank 4, got {}", number, to_string(type));
  }
}

ConvConfig config_of(const OpCall& call, const Shape& x, const Shape& w) {
  const int64_t groups = int_attr(call.attrs, "group");
  if (groups < 1 || x[1] % groups != 0 || w[0] % groups != 0) {
    fail(Code::kInvalidArgument,
         "group is {}, expected a divisor of the {} input and {} output channels", groups, x[1],
         w[0]);
  }
  if (w[1] != x[1] / groups) {
    fail(Code::kInvalidArgument, "the weights {} are for {} channels per group, the input has {}",
         to_string(w), w[1], x[1] / groups);
  }
  ConvConfig config;
  put_window(window_of(call.attrs, w[2], w[3]), config);
  check_fits(window_of(call.attrs, w[2], w[3]), x[2], x[3]);
  config.batch = x[0], config.in_channels = x[1], config.height = x[2], config.width = x[3];
  config.out_channels = w[0];
  config.groups = groups;
  return config;
}

Shape y_shape(const ConvConfig& c) { return {c.batch, c.out_channels, c.out_h(), c.out_w()}; }

void check_dy(const ConvConfig& config, const Shape& dy) {
  if (dy != y_shape(config)) {
    fail(Code::kInvalidArgument, "dy (input 0) needs shape {}", to_string(y_shape(config)));
  }
}

ConvEpilogue epilogue_of(const OpCall& call) {
  ConvEpilogue epilogue;
  epilogue.has_bias = int_attr(call.attrs, "has_bias") != 0;
  epilogue.has_scale = int_attr(call.attrs, "has_scale") != 0;
  epilogue.has_residual = int_attr(call.attrs, "has_residual") != 0;
  const std::string& activation = string_attr(call.attrs, "activation");
  if (activation != "none" && activation != "relu") {
    fail(Code::kInvalidArgument, "activation \"{}\" is not none or relu", activation);
  }
  epilogue.has_relu = activation == "relu";
  return epilogue;
}

std::vector<TensorType> infer_conv2d(const OpCall& call) {
  check_tensor(call, 0);
  check_tensor(call, 1);
  const ConvConfig config = config_of(call, call.inputs[0].shape, call.inputs[1].shape);
  const ConvEpilogue epilogue = epilogue_of(call);
  const TensorType result{DType::kF32, y_shape(config)},
      per_channel{DType::kF32, {config.out_channels}};
  std::vector<TensorType> extra;
  if (epilogue.has_bias) extra.push_back(per_channel);
  if (epilogue.has_scale) extra.insert(extra.end(), 2, per_channel);
  if (epilogue.has_residual) extra.push_back(result);
  if (call.inputs.size() != 2 + extra.size()) {
    fail(Code::kInvalidArgument, "this epilogue takes {} inputs, got {}", 2 + extra.size(),
         call.inputs.size());
  }
  for (size_t i = 0; i < extra.size(); ++i) {
    if (call.inputs[2 + i] != extra[i]) {
      fail(Code::kInvalidArgument, "input {} needs {}", 2 + i, to_string(extra[i]));
    }
  }
  return {result};
}

OpDef conv2d() {
  OpDef op;
  op.name = "conv2d";
  op.min_inputs = 2;
  op.max_inputs = 6;
  op.attrs = window_attrs();
  op.attrs.push_back({"group", int64_t{1}});
  for (const char* name : {"has_bias", "has_scale", "has_residual"}) {
    op.attrs.push_back({name, int64_t{0}});
  }
  op.attrs.push_back({"activation", std::string("none")});
  op.infer = infer_conv2d;
  op.plan = [](kernels::DeviceClass device_class, const OpCall& call,
               const std::vector<TensorType>&) {
    return kernels::plan_conv2d(device_class,
                                config_of(call, call.inputs[0].shape, call.inputs[1].shape),
                                epilogue_of(call));
  };
  return op;
}

// Inputs dy and w; the shape of x is an attribute.
OpDef conv2d_input_grad() {
  OpDef op;
  op.name = "conv2d_input_grad";
  op.min_inputs = op.max_inputs = 2;
  op.attrs = window_attrs();
  op.attrs.push_back({"group", int64_t{1}});
  op.attrs.push_back({"input_size", std::vector<int64_t>{}, true});
  const auto config = [](const OpCall& call) {
    return config_of(call, shape_attr(call.attrs, "input_size"), call.inputs[1].shape);
  };
  op.infer = [config](const OpCall& call) -> std::vector<TensorType> {
    check_tensor(call, 0);
    check_tensor(call, 1);
    check_dy(config(call), call.inputs[0].shape);
    return {{DType::kF32, shape_attr(call.attrs, "input_size")}};
  };
  op.plan = [config](kernels::DeviceClass device_class, const OpCall& call,
                     const std::vector<TensorType>&) {
    return kernels::plan_conv2d_input_grad(device_class, config(call));
  };
  return op;
}

// Inputs dy and x; the shape of w is an attribute.
OpDef conv2d_weight_grad() {
  OpDef op;
  op.name = "conv2d_weight_grad";
  op.min_inputs = op.max_inputs = 2;
  op.attrs = window_attrs();
  op.attrs.push_back({"group", int64_t{1}});
  op.attrs.push_back({"weight_size", std::vector<int64_t>{}, true});
  const auto config = [](const OpCall& call) {
    return config_of(call, call.inputs[1].shape, shape_attr(call.attrs, "weight_size"));
  };
  op.infer = [config](const OpCall& call) -> std::vector<TensorType> {
    check_tensor(call, 0);
    check_tensor(call, 1);
    check_dy(config(call), call.inputs[0].shape);
    return {{DType::kF32, shape_attr(call.attrs, "weight_size")}};
  };
  op.plan = [config](kernels::DeviceClass device_class, const OpCall& call,
                     const std::vector<TensorType>&) {
    return kernels::plan_conv2d_weight_grad(device_class, config(call));
  };
  return op;
}

}  // namespace

std::vector<OpDef> conv_ops() { return {conv2d(), conv2d_input_grad(), conv2d_weight_grad()}; }

}  // namespace ballast::graph
