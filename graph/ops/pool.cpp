// Max and average pooling (MindSpore's MaxPool and AvgPool, NCHW), their gradients, and the
// gradient of max pooling's gradient (MaxPoolGradGrad).
#include "graph/ops/window.h"

#include <algorithm>

namespace ballast::graph {

using device::Code;
using device::fail;
using kernels::PoolConfig;

namespace {

using PlanPool = kernels::Plan (*)(kernels::DeviceClass, const PoolConfig&);
using InferPool = std::vector<TensorType> (*)(const OpCall&);

void check_tensor(const OpCall& call, size_t number) {
  const TensorType& type = call.inputs[number];
  if (type.dtype != DType::kF32) {
    fail(Code::kUnimplemented, "has no kernel for {}", name_of(type.dtype));
  }
  if (type.shape.size() != 4) {
    fail(Code::kInvalidArgument, "input {} needs rank 4, got {}", number, to_string(type));
  }
}

PoolConfig config_of(const OpCall& call, const Shape& x) {
  const std::vector<int64_t>& kernel = ints_attr(call.attrs, "kernel_size");
  if (kernel.size() != 2) {
    fail(Code::kInvalidArgument, "kernel_size is {}, expected 2 numbers", to_string(kernel));
  }
  const Window window = window_of(call.attrs, kernel[0], kernel[1]);
  check_fits(window, x[2], x[3]);
  const int64_t extent_h = (window.kernel_h - 1) * window.dilation_h + 1,
                extent_w = (window.kernel_w - 1) * window.dilation_w + 1;
  if (std::max(window.top, window.bottom) >= extent_h ||
      std::max(window.left, window.right) >= extent_w) {
    fail(Code::kInvalidArgument,
         "padding is {}, expected less than the kernel's extent of {} by {}",
         to_string(ints_attr(call.attrs, "padding")), extent_h, extent_w);
  }
  PoolConfig config;
  put_window(window, config);
  config.planes = x[0] * x[1], config.height = x[2], config.width = x[3];
  if (call.attrs.count("count_include_pad")) {
    config.counts_padding = int_attr(call.attrs, "count_include_pad") != 0;
    if (window.dilation_h != 1 || window.dilation_w != 1) {
      fail(Code::kInvalidArgument, "dilation is not 1, which average pooling does not have");
    }
  }
  return config;
}

TensorType y_type(const Shape& x, const PoolConfig& config) {
  return {DType::kF32, {x[0], x[1], config.out_h(), config.out_w()}};
}

void check_dy(const OpCall& call, const Shape& x) {
  const TensorType expected = y_type(x, config_of(call, x));
  if (call.inputs[0] != expected) {
    fail(Code::kInvalidArgument, "dy (input 0) needs {}", to_string(expected));
  }
}

std::vector<TensorType> infer_forward(const OpCall& call) {
  check_tensor(call, 0);
  const Shape& x = call.inputs[0].shape;
  return {y_type(x, config_of(call, x))};
}

// Inputs dy and x.
std::vector<TensorType> infer_max_grad(const OpCall& call) {
  check_tensor(call, 0);
  check_tensor(call, 1);
  check_dy(call, call.inputs[1].shape);
  return {call.inputs[1]};
}

// Inputs g and x, of one type.
std::vector<TensorType> infer_max_grad_grad(const OpCall& call) {
  check_tensor(call, 1);
  if (call.inputs[0] != call.inputs[1]) {
    fail(Code::kInvalidArgument, "inputs 0 and 1 need the same type");
  }
  const Shape& x = call.inputs[1].shape;
  return {y_type(x, config_of(call, x))};
}

// Input dy; the shape of x is an attribute.
std::vector<TensorType> infer_avg_grad(const OpCall& call) {
  check_tensor(call, 0);
  const Shape x = shape_attr(call.attrs, "input_size");
  check_dy(call, x);
  return {{DType::kF32, x}};
}

OpDef pooling(const char* name, size_t inputs, InferPool infer, PlanPool plan) {
  OpDef op;
  op.name = name;
  op.min_inputs = op.max_inputs = inputs;
  op.attrs = window_attrs();
  op.attrs.push_back({"kernel_size", std::vector<int64_t>{}, true});
  const bool is_average = op.name.rfind("avg", 0) == 0;
  const bool has_input_size = is_average && op.name != "avg_pool2d";
  if (is_average) op.attrs.push_back({"count_include_pad", int64_t{1}});
  if (has_input_size) op.attrs.push_back({"input_size", std::vector<int64_t>{}, true});
  op.infer = infer;
  op.plan = [plan, has_input_size](kernels::DeviceClass device_class, const OpCall& call,
                                   const std::vector<TensorType>&) {
    const Shape x =
        has_input_size ? shape_attr(call.attrs, "input_size") : call.inputs.back().shape;
    return plan(device_class, config_of(call, x));
  };
  return op;
}

}  // namespace

std::vector<OpDef> pool_ops() {
  return {
      pooling("max_pool2d", 1, infer_forward, kernels::plan_max_pool2d),
      pooling("max_pool2d_grad", 2, infer_max_grad, kernels::plan_max_pool2d_grad),
      pooling("max_pool2d_grad_grad", 2, infer_max_grad_grad, kernels::plan_max_pool2d_grad_grad),
      pooling("avg_pool2d", 1, infer_forward, kernels::plan_avg_pool2d),
      pooling("avg_pool2d_grad", 1, infer_avg_grad, kernels::plan_avg_pool2d_grad),
  };
}

}  // namespace ballast::graph
