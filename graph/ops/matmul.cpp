// matmul, with the epilogue that the fuse_matmul pass gives it.
#include "graph/op.h"

namespace ballast::graph {

using device::Code;
using device::fail;

namespace {

// Leading dimensions of a are rows (MindSpore's Dense on [..., K]); b is a matrix.
kernels::MatmulConfig config_of(const OpCall& call) {
  const Shape& a = call.inputs[0].shape;
  const Shape& b = call.inputs[1].shape;
  kernels::MatmulConfig config;
  config.transpose_a = int_attr(call.attrs, "transpose_a") != 0;
  config.transpose_b = int_attr(call.attrs, "transpose_b") != 0;
  config.activation = string_attr(call.attrs, "activation");
  config.has_bias = int_attr(call.attrs, "has_bias") != 0;
  if (config.transpose_a) {
    config.k = a[0];
    config.m = a[1];
  } else {
    config.k = a.back();
    config.m = 1;
    for (size_t i = 0; i + 1 < a.size(); ++i) config.m *= a[i];
  }
  config.n = config.transpose_b ? b[0] : b[1];
  return config;
}

void check_operands(const OpCall& call) {
  const Shape& a = call.inputs[0].shape;
  const Shape& b = call.inputs[1].shape;
  for (const TensorType& input : call.inputs) {
    if (input.dtype != DType::kF32) {
      fail(Code::kUnimplemented, "has no kernel for {}", name_of(input.dtype));
    }
  }
  const bool is_transposed_a = int_attr(call.attrs, "transpose_a") != 0;
  if (a.size() < 2 || (is_transposed_a && a.size() != 2)) {
    fail(Code::kInvalidArgument, "input 0 needs rank 2{}",
         is_transposed_a ? " where it is transposed" : " or more");
  }
  if (b.size() != 2) fail(Code::kInvalidArgument, "input 1 needs rank 2");
  const int64_t k_a = is_transposed_a ? a[0] : a.back();
  const int64_t k_b = int_attr(call.attrs, "transpose_b") ? b[1] : b[0];
  if (k_a != k_b) {
    fail(Code::kInvalidArgument, "inner extents differ: {} of input 0 ({}), {} of input 1 ({})",
         k_a, is_transposed_a ? "transposed" : "plain", k_b,
         int_attr(call.attrs, "transpose_b") ? "transposed" : "plain");
  }
}

std::vector<TensorType> infer_matmul(const OpCall& call) {
  check_operands(call);
  const kernels::MatmulConfig config = config_of(call);
  TensorType result{DType::kF32, {}};
  if (config.transpose_a) {
    result.shape = {config.m};
  } else {
    result.shape.assign(call.inputs[0].shape.begin(), call.inputs[0].shape.end() - 1);
  }
  result.shape.push_back(config.n);

  const bool has_y = config.activation == "relu_grad";
  if (!has_y && config.activation != "none" && config.activation != "relu") {
    fail(Code::kInvalidArgument, "activation \"{}\" is not none, relu or relu_grad",
         config.activation);
  }
  const size_t expected = 2 + size_t{config.has_bias} + size_t{has_y};
  if (call.inputs.size() != expected) {
    fail(Code::kInvalidArgument, "this epilogue takes {} inputs, got {}", expected,
         call.inputs.size());
  }
  if (config.has_bias && call.inputs[2].shape != Shape{config.n}) {
    fail(Code::kInvalidArgument, "bias (input 2) needs shape [{}]", config.n);
  }
  if (has_y && call.inputs.back().elements() != result.elements()) {
    fail(Code::kInvalidArgument, "input {} needs as many elements as the result, {}",
         call.inputs.size() - 1, to_string(result.shape));
  }
  return {result};
}

}  // namespace

std::vector<OpDef> matmul_ops() {
  OpDef op;
  op.name = "matmul";
  op.min_inputs = 2;
  op.max_inputs = 4;
  op.attrs = {{"transpose_a", int64_t{0}},
              {"transpose_b", int64_t{0}},
              {"has_bias", int64_t{0}},
              {"activation", std::string("none")}};
  op.infer = infer_matmul;
  op.plan = [](kernels::DeviceClass device_class, const OpCall& call,
               const std::vector<TensorType>&) {
    return kernels::plan_matmul(device_class, config_of(call));
  };
  return {op};
}

}  // namespace ballast::graph
