// reshape, barrier, broadcast_to, transpose.
#include "graph/ops/shape_ops.h"

#include <algorithm>
#include <numeric>

namespace ballast::graph {

using device::Code;
using device::fail;

namespace {

std::vector<int64_t> dense_strides(const Shape& shape) {
  std::vector<int64_t> strides(shape.size());
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= shape[i];
  }
  return strides;
}

OpDef reshape() {
  OpDef op;
  op.name = "reshape";
  op.attrs = {{"shape", std::vector<int64_t>{}, true}};
  op.is_alias = true;
  op.infer = [](const OpCall& call) -> std::vector<TensorType> {
    TensorType result{call.inputs[0].dtype, ints_attr(call.attrs, "shape")};
    auto wild = std::find(result.shape.begin(), result.shape.end(), -1);
    if (wild != result.shape.end()) {
      *wild = 1;
      check_size(result);
      const int64_t rest = result.elements();
      *wild = rest == 0 ? 0 : call.inputs[0].elements() / rest;
    }
    check_size(result);
    if (result.elements() != call.inputs[0].elements()) {
      fail(Code::kInvalidArgument, "cannot reshape to {}",
           to_string(ints_attr(call.attrs, "shape")));
    }
    return {result};
  };
  op.plan = [](kernels::DeviceClass device_class, const OpCall& call,
               const std::vector<TensorType>& outputs) {
    return kernels::plan_copy(device_class, outputs[0].dtype, {outputs[0].elements()}, {1});
  };
  return op;
}

// No pass sees through it: what is computed from x and from barrier(x) is computed twice, the
// latter where it stands in the order of nodes.
OpDef barrier() {
  OpDef op;
  op.name = "barrier";
  op.max_inputs = 4096;
  op.is_alias = true;
  op.infer = [](const OpCall& call) -> std::vector<TensorType> { return {call.inputs[0]}; };
  op.plan = [](kernels::DeviceClass device_class, const OpCall&,
               const std::vector<TensorType>& outputs) {
    return kernels::plan_copy(device_class, outputs[0].dtype, {outputs[0].elements()}, {1});
  };
  return op;
}

OpDef broadcast_to() {
  OpDef op;
  op.name = "broadcast_to";
  op.attrs = {{"shape", std::vector<int64_t>{}, true}};
  op.infer = [](const OpCall& call) -> std::vector<TensorType> {
    const Shape& shape = ints_attr(call.attrs, "shape");
    check_size({call.inputs[0].dtype, shape});
    if (broadcast(call.inputs[0].shape, shape) != shape) {
      fail(Code::kInvalidArgument, "cannot broadcast to {}", to_string(shape));
    }
    return {{call.inputs[0].dtype, shape}};
  };
  op.plan = [](kernels::DeviceClass device_class, const OpCall& call,
               const std::vector<TensorType>& outputs) {
    const Shape& from = call.inputs[0].shape;
    const Shape& to = outputs[0].shape;
    const std::vector<int64_t> dense = dense_strides(from);
    std::vector<int64_t> strides(to.size(), 0);
    for (size_t i = 0; i < from.size(); ++i) {
      if (from[i] != 1) strides[to.size() - from.size() + i] = dense[i];
    }
    return kernels::plan_copy(device_class, outputs[0].dtype, to, strides);
  };
  return op;
}

OpDef transpose() {
  OpDef op;
  op.name = "transpose";
  op.attrs = {{"perm", std::vector<int64_t>{}, true}};
  op.infer = [](const OpCall& call) -> std::vector<TensorType> {
    const auto& perm = ints_attr(call.attrs, "perm");
    const Shape& shape = call.inputs[0].shape;
    std::vector<int64_t> sorted = perm, expected(shape.size());
    std::sort(sorted.begin(), sorted.end());
    std::iota(expected.begin(), expected.end(), 0);
    if (sorted != expected) {
      fail(Code::kInvalidArgument, "perm {} is not a permutation of the axes", to_string(perm));
    }
    TensorType result{call.inputs[0].dtype, {}};
    for (int64_t axis : perm) result.shape.push_back(shape[axis]);
    return {result};
  };
  op.plan = [](kernels::DeviceClass device_class, const OpCall& call,
               const std::vector<TensorType>& outputs) {
    const std::vector<int64_t> dense = dense_strides(call.inputs[0].shape);
    std::vector<int64_t> strides;
    for (int64_t axis : ints_attr(call.attrs, "perm")) strides.push_back(dense[axis]);
    return kernels::plan_copy(device_class, outputs[0].dtype, outputs[0].shape, strides);
  };
  return op;
}

}  // namespace

std::vector<OpDef> shape_ops() {
  std::vector<OpDef> ops = region_ops();
  for (const OpDef& op : {reshape(), barrier(), broadcast_to(), transpose()}) ops.push_back(op);
  return ops;
}

}  // namespace ballast::graph
