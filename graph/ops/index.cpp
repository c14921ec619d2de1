// Elements picked by index: gather, gather_elements, their gradients, scatter_add, one_hot.
// Semantics: MindSpore's Gather, GatherD and OneHot; numpy's take_along_axis. Indices count from
// the end where negative; what lies outside reads as 0 and is not written (one_hot: no such row).
#include "graph/op.h"

namespace ballast::graph {

using device::Code;
using device::fail;
using kernels::DeviceClass;
using kernels::Picks;

namespace {

size_t checked_axis(const OpCall& call, size_t rank) {
  const int64_t axis = int_attr(call.attrs, "axis");
  if (axis < 0 || axis >= static_cast<int64_t>(rank)) {
    fail(Code::kInvalidArgument, "axis {} is not in [0, {})", axis, rank);
  }
  return static_cast<size_t>(axis);
}

size_t axis_of(const OpCall& call) { return static_cast<size_t>(int_attr(call.attrs, "axis")); }

void check_indices(const TensorType& indices) {
  if (indices.dtype != DType::kI32 && indices.dtype != DType::kI64) {
    fail(Code::kInvalidArgument, "indices are {}, expected i32 or i64", name_of(indices.dtype));
  }
}

// What gather of `table` gives.
TensorType picked(Picks picks, const TensorType& table, const TensorType& indices, size_t axis) {
  check_indices(indices);
  TensorType result{table.dtype, indices.shape};
  if (picks == Picks::kElements) {
    Shape others = indices.shape;
    if (others.size() == table.shape.size()) others[axis] = table.shape[axis];
    if (others != table.shape) {
      fail(Code::kInvalidArgument, "indices {} differ from {} in more than axis {}",
           to_string(indices.shape), to_string(table.shape), axis);
    }
    return result;
  }
  result.shape = table.shape;
  result.shape.erase(result.shape.begin() + static_cast<int64_t>(axis));
  result.shape.insert(result.shape.begin() + static_cast<int64_t>(axis), indices.shape.begin(),
                      indices.shape.end());
  return result;
}

OpDef gather(const std::string& name, Picks picks) {
  OpDef op;
  op.name = name;
  op.min_inputs = op.max_inputs = 2;
  op.attrs = {{"axis", int64_t{0}}};
  op.infer = [picks](const OpCall& call) -> std::vector<TensorType> {
    const size_t axis = checked_axis(call, call.inputs[0].shape.size());
    return {picked(picks, call.inputs[0], call.inputs[1], axis)};
  };
  op.plan = [picks](DeviceClass c, const OpCall& call, const std::vector<TensorType>& outputs) {
    return kernels::plan_gather(c, picks, call.inputs[0], call.inputs[1], axis_of(call),
                                outputs[0]);
  };
  return op;
}

void check_sum(const TensorType& table, const TensorType& updates, const TensorType& expected) {
  if (table.dtype != DType::kF32 && !is_integer(table.dtype)) {
    fail(Code::kInvalidArgument, "sums are {}, expected f32, i32, i64 or u8", name_of(table.dtype));
  }
  if (updates != expected) {
    fail(Code::kInvalidArgument, "updates are {}, expected {}", to_string(updates),
         to_string(expected));
  }
}

// inputs indices, dy
OpDef gather_grad(const std::string& name, Picks picks) {
  OpDef op;
  op.name = name;
  op.min_inputs = op.max_inputs = 2;
  op.attrs = {{"shape", std::vector<int64_t>{}, true}, {"axis", int64_t{0}}};
  op.infer = [picks](const OpCall& call) -> std::vector<TensorType> {
    const TensorType table{call.inputs[1].dtype, ints_attr(call.attrs, "shape")};
    check_size(table);
    const size_t axis = checked_axis(call, table.shape.size());
    check_sum(table, call.inputs[1], picked(picks, table, call.inputs[0], axis));
    return {table};
  };
  op.plan = [picks](DeviceClass c, const OpCall& call, const std::vector<TensorType>& outputs) {
    return kernels::plan_scatter_add(c, picks, false, call.inputs[0], call.inputs[1], axis_of(call),
                                     outputs[0]);
  };
  return op;
}

// inputs table, indices, updates
OpDef scatter_add(const std::string& name, Picks picks) {
  OpDef op;
  op.name = name;
  op.min_inputs = op.max_inputs = 3;
  op.attrs = {{"axis", int64_t{0}}};
  op.in_place = {{0, 0}};
  op.infer = [picks](const OpCall& call) -> std::vector<TensorType> {
    const TensorType& table = call.inputs[0];
    const size_t axis = checked_axis(call, table.shape.size());
    check_sum(table, call.inputs[2], picked(picks, table, call.inputs[1], axis));
    return {table};
  };
  op.plan = [picks](DeviceClass c, const OpCall& call, const std::vector<TensorType>& outputs) {
    return kernels::plan_scatter_add(c, picks, true, call.inputs[1], call.inputs[2], axis_of(call),
                                     outputs[0]);
  };
  return op;
}

OpDef one_hot() {
  OpDef op;
  op.name = "one_hot";
  op.attrs = {{"depth", int64_t{0}, true},
              {"axis", int64_t{0}, true},
              {"on", 1.0},
              {"off", 0.0},
              {"dtype", static_cast<int64_t>(DType::kF32)}};
  op.infer = [](const OpCall& call) -> std::vector<TensorType> {
    check_indices(call.inputs[0]);
    const int64_t code = int_attr(call.attrs, "dtype"), depth = int_attr(call.attrs, "depth");
    if (code < static_cast<int64_t>(DType::kF32) || code > static_cast<int64_t>(DType::kBool)) {
      fail(Code::kInvalidArgument, "dtype {} is no element type", code);
    }
    if (depth < 0) fail(Code::kInvalidArgument, "depth is {}", depth);
    for (const char* name : {"on", "off"}) {
      check_fits(std::get<double>(call.attrs.at(name)), static_cast<DType>(code));
    }
    TensorType result{static_cast<DType>(code), call.inputs[0].shape};
    const size_t axis = checked_axis(call, result.shape.size() + 1);
    result.shape.insert(result.shape.begin() + static_cast<int64_t>(axis), depth);
    return {result};
  };
  op.plan = [](DeviceClass c, const OpCall& call, const std::vector<TensorType>& outputs) {
    return kernels::plan_one_hot(c, call.inputs[0], axis_of(call),
                                 std::get<double>(call.attrs.at("on")),
                                 std::get<double>(call.attrs.at("off")), outputs[0]);
  };
  return op;
}

}  // namespace

std::vector<OpDef> index_ops() {
  return {gather("gather", Picks::kRows),
          gather("gather_elements", Picks::kElements),
          gather_grad("gather_grad", Picks::kRows),
          gather_grad("gather_elements_grad", Picks::kElements),
          scatter_add("index_add", Picks::kRows),
          scatter_add("scatter_add", Picks::kElements),
          one_hot()};
}

}  // namespace ballast::graph
