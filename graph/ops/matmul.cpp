// matmul, with the epilogue that the fuse_matmul_epilogues pass gives it.
//
// "fused_matmul", made by fuse_products: the product is the first input, i0, of a chain of
// pointwise steps (graph/ops/fused.h), whose other inputs are those behind A and B; the result is
// that of the last step.
#include "graph/ops/fused.h"

#include <algorithm>

namespace ballast::graph {

using device::Code;
using device::fail;

namespace {

// One operand of a call: a matrix op(X) [rows, columns] for each index of the leading dimensions.
struct Matrices {
  bool is_transposed = false;
  int64_t rows = 0, columns = 0;
  Shape batch;
};

Matrices matrices_of(const OpCall& call, size_t input) {
  const Shape& shape = call.inputs[input].shape;
  if (shape.size() < 2) fail(Code::kInvalidArgument, "input {} needs rank 2 or more", input);
  Matrices m;
  m.is_transposed = int_attr(call.attrs, input == 0 ? "transpose_a" : "transpose_b") != 0;
  m.rows = shape[shape.size() - 2];
  m.columns = shape.back();
  if (m.is_transposed) std::swap(m.rows, m.columns);
  m.batch.assign(shape.begin(), shape.end() - 2);
  return m;
}

// Elements from one matrix to the next along each dimension of `batch`; 0 where they repeat.
std::vector<int64_t> batch_strides(const Matrices& m, const Shape& batch) {
  std::vector<int64_t> strides(batch.size(), 0);
  int64_t stride = m.rows * m.columns;
  for (size_t i = 1; i <= m.batch.size(); ++i) {
    const int64_t extent = m.batch[m.batch.size() - i];
    if (extent != 1) strides[batch.size() - i] = stride;
    stride *= extent;
  }
  return strides;
}

bool has_y(const kernels::MatmulConfig& config) { return config.activation == "relu_grad"; }

kernels::MatmulConfig product_of(const OpCall& call) {
  const Matrices a = matrices_of(call, 0), b = matrices_of(call, 1);
  const Shape batch = broadcast(a.batch, b.batch);
  kernels::MatmulConfig config;
  config.m = a.rows;
  config.n = b.columns;
  config.dtype = call.inputs[0].dtype;
  config.k = a.columns;
  config.transpose_a = a.is_transposed;
  config.transpose_b = b.is_transposed;
  const std::vector<int64_t> a_strides = batch_strides(a, batch),
                             b_strides = batch_strides(b, batch);
  const std::vector<int64_t> c_strides = batch_strides({false, config.m, config.n, batch}, batch);
  for (size_t i = 0; i < batch.size(); ++i) {
    config.batch.push_back({batch[i], a_strides[i], b_strides[i], c_strides[i]});
  }
  return config;
}

kernels::MatmulConfig config_of(const OpCall& call) {
  kernels::MatmulConfig config = product_of(call);
  config.has_bias = int_attr(call.attrs, "has_bias") != 0;
  config.activation = string_attr(call.attrs, "activation");
  config.has_residual = int_attr(call.attrs, "has_residual") != 0;
  return config;
}

void check_f32(const TensorType& input) {
  if (input.dtype == DType::kF32) return;
  fail(Code::kUnimplemented, "has no kernel for {}", name_of(input.dtype));
}

// Floats, or two operands of an integer type.
void check_dtypes(const OpCall& call) {
  const DType dtype = call.inputs[0].dtype;
  const bool is_whole = dtype == DType::kI32 || dtype == DType::kI64;
  if (!is_whole) {
    std::for_each(call.inputs.begin(), call.inputs.end(), check_f32);
  } else if (call.inputs[1].dtype != dtype) {
    fail(Code::kInvalidArgument, "does not take these dtypes");
  }
}

void check_product(const OpCall& call) {
  const Matrices a = matrices_of(call, 0), b = matrices_of(call, 1);
  if (a.columns != b.rows) {
    fail(Code::kInvalidArgument, "inner extents differ: {} of input 0 ({}), {} of input 1 ({})",
         a.columns, a.is_transposed ? "transposed" : "plain", b.rows,
         b.is_transposed ? "transposed" : "plain");
  }
}

void check_epilogue(const OpCall& call, const kernels::MatmulConfig& config,
                    const TensorType& result) {
  kernels::check_epilogue(config);
  const bool has_extra = has_y(config) || config.has_residual;
  const size_t expected = 2 + size_t{config.has_bias} + size_t{has_extra};
  if (call.inputs.size() != expected) {
    fail(Code::kInvalidArgument, "this epilogue takes {} inputs, got {}", expected,
         call.inputs.size());
  }
  if (config.has_bias && call.inputs[2].shape != Shape{config.n}) {
    fail(Code::kInvalidArgument, "bias (input 2) needs shape [{}]", config.n);
  }
  if (has_extra && call.inputs.back().elements() != result.elements()) {
    fail(Code::kInvalidArgument, "input {} needs as many elements as the result, {}",
         call.inputs.size() - 1, to_string(result.shape));
  }
}

TensorType result_of(const kernels::MatmulConfig& config) {
  TensorType result{config.dtype, {}};
  for (const kernels::MatmulBatch& batch : config.batch) result.shape.push_back(batch.extent);
  result.shape.push_back(config.m);
  result.shape.push_back(config.n);
  return result;
}

std::vector<TensorType> infer_matmul(const OpCall& call) {
  check_dtypes(call);
  check_product(call);
  const kernels::MatmulConfig config = config_of(call);
  const TensorType result = result_of(config);
  check_epilogue(call, config, result);
  return {result};
}

kernels::FusedPointwise chain_of(const OpCall& call) {
  std::vector<TensorType> inputs = {result_of(product_of(call))};
  inputs.insert(inputs.end(), call.inputs.begin() + 2, call.inputs.end());
  return parse_chain(FusedKind::kPointwise, string_attr(call.attrs, "program"), inputs);
}

OpDef matmul() {
  OpDef op;
  op.name = "matmul";
  op.min_inputs = 2;
  op.max_inputs = 4;
  op.attrs = {{"transpose_a", int64_t{0}},
              {"transpose_b", int64_t{0}},
              {"has_bias", int64_t{0}},
              {"activation", std::string("none")},
              {"has_residual", int64_t{0}}};
  op.infer = infer_matmul;
  op.plan = [](kernels::DeviceClass device_class, const OpCall& call,
               const std::vector<TensorType>&) {
    return kernels::plan_matmul(device_class, config_of(call));
  };
  return op;
}

OpDef fused_matmul() {
  OpDef op;
  op.name = "fused_matmul";
  op.min_inputs = 2;
  op.max_inputs = 64;
  op.is_internal = true;
  op.attrs = {
      {"transpose_a", int64_t{0}}, {"transpose_b", int64_t{0}}, {"program", std::string(), true}};
  op.infer = [](const OpCall& call) -> std::vector<TensorType> {
    std::for_each(call.inputs.begin(), call.inputs.begin() + 2, check_f32);
    check_product(call);
    return {chain_of(call).steps.back().type};
  };
  op.plan = [](kernels::DeviceClass device_class, const OpCall& call,
               const std::vector<TensorType>&) {
    return kernels::plan_fused_matmul(device_class, product_of(call), chain_of(call));
  };
  return op;
}

}  // namespace

std::vector<OpDef> matmul_ops() { return {matmul(), fused_matmul()}; }

}  // namespace ballast::graph
