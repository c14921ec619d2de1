// Every row of kernels/pointwise/pointwise_ops.inc, with numpy's broadcasting.
#include "kernels/pointwise/pointwise_ops.h"

#include "graph/op.h"

namespace ballast::graph {

using device::Code;
using device::fail;
using kernels::PointwiseOp;
using kernels::PointwiseRule;

namespace {

DType result_dtype(const PointwiseOp& row, const OpCall& call) {
  switch (row.rule) {
    case PointwiseRule::kTest:
    case PointwiseRule::kCompare:
    case PointwiseRule::kLogical:
      return DType::kBool;
    case PointwiseRule::kSelect:
      return call.inputs[1].dtype;
    case PointwiseRule::kCast:
      return static_cast<DType>(int_attr(call.attrs, "dtype"));
    default:
      return call.inputs[0].dtype;
  }
}

std::vector<TensorType> infer_pointwise(const PointwiseOp& row, const OpCall& call) {
  TensorType result{result_dtype(row, call), {}};
  std::vector<DType> dtypes;
  for (const TensorType& input : call.inputs) dtypes.push_back(input.dtype);
  if (!accepts(row, dtypes, result.dtype)) {
    fail(Code::kInvalidArgument, "does not take these dtypes");
  }
  for (const TensorType& input : call.inputs) result.shape = broadcast(result.shape, input.shape);
  return {result};
}

OpDef make_op(const PointwiseOp& row) {
  OpDef op;
  op.name = row.name;
  op.min_inputs = op.max_inputs = static_cast<size_t>(row.arity);
  op.is_pointwise = true;
  if (row.rule == PointwiseRule::kCast) op.attrs = {{"dtype", int64_t{0}, true}};
  for (size_t input = 0; input < op.max_inputs; ++input) op.in_place.emplace_back(0, input);
  op.infer = [row](const OpCall& call) { return infer_pointwise(row, call); };
  op.plan = [row](kernels::DeviceClass device_class, const OpCall& call,
                  const std::vector<TensorType>& outputs) {
    return kernels::plan_pointwise(device_class, row.name, call.inputs, outputs[0]);
  };
  return op;
}

}  // namespace

std::vector<OpDef> pointwise_ops() {
  std::vector<OpDef> ops;
  for (const PointwiseOp& row : kernels::pointwise_ops()) ops.push_back(make_op(row));
  return ops;
}

}  // namespace ballast::graph
