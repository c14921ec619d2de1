// Reductions over axes, with numpy's rules for axes and kept dimensions.
//
// "fused_reduce", made by fuse_reductions: the reduction of what a chain of pointwise steps gives
// (`program`, see fused.cpp).
#include "graph/ops/reduce.h"

#include "graph/ops/fused.h"

#include <algorithm>

namespace ballast::graph {

using device::Code;
using device::fail;

namespace {

int64_t checked_axis(int64_t axis, size_t rank) {
  const int64_t positive = axis < 0 ? axis + static_cast<int64_t>(rank) : axis;
  if (positive < 0 || positive >= static_cast<int64_t>(rank)) {
    fail(Code::kInvalidArgument, "axis {} is out of range for rank {}", axis, rank);
  }
  return positive;
}

}  // namespace

std::vector<int64_t> reduced_axes(const Attrs& attrs, size_t rank) {
  std::vector<int64_t> axes;
  if (attrs.count("axis")) {
    axes.push_back(checked_axis(int_attr(attrs, "axis"), rank));
    return axes;
  }
  for (int64_t axis : ints_attr(attrs, "axes")) axes.push_back(checked_axis(axis, rank));
  if (axes.empty()) {
    for (size_t axis = 0; axis < rank; ++axis) axes.push_back(static_cast<int64_t>(axis));
  }
  std::sort(axes.begin(), axes.end());
  if (std::adjacent_find(axes.begin(), axes.end()) != axes.end()) {
    fail(Code::kInvalidArgument, "axes {} repeat", to_string(ints_attr(attrs, "axes")));
  }
  return axes;
}

namespace {

Shape reduced_shape(const Shape& shape, const std::vector<int64_t>& axes, bool keeps_dims) {
  Shape result;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (!std::binary_search(axes.begin(), axes.end(), static_cast<int64_t>(i))) {
      result.push_back(shape[i]);
    } else if (keeps_dims) {
      result.push_back(1);
    }
  }
  return result;
}

struct Rule {
  const char* name;
  const char* kind;  // of kernels::plan_reduce or plan_arg
  std::vector<DType> dtypes;
  bool allows_empty;  // has a value over zero elements
  bool is_arg;        // one axis, gives indices
};

OpDef reduction(const Rule& rule) {
  OpDef op;
  op.name = rule.name;
  if (rule.is_arg) {
    op.attrs = {{"axis", int64_t{-1}}, {"keep_dims", int64_t{0}}};
  } else {
    op.attrs = {{"axes", std::vector<int64_t>{}}, {"keep_dims", int64_t{0}}};
  }
  op.infer = [rule](const OpCall& call) -> std::vector<TensorType> {
    const TensorType& input = call.inputs[0];
    if (std::find(rule.dtypes.begin(), rule.dtypes.end(), input.dtype) == rule.dtypes.end()) {
      fail(Code::kUnimplemented, "has no kernel for {}", name_of(input.dtype));
    }
    const auto axes = reduced_axes(call.attrs, input.shape.size());
    if (!rule.allows_empty) {
      for (int64_t axis : axes) {
        if (input.shape[axis] == 0) fail(Code::kInvalidArgument, "axis {} has no elements", axis);
      }
    }
    return {{rule.is_arg ? DType::kI32 : input.dtype,
             reduced_shape(input.shape, axes, int_attr(call.attrs, "keep_dims") != 0)}};
  };
  op.plan = [rule](kernels::DeviceClass device_class, const OpCall& call,
                   const std::vector<TensorType>& outputs) {
    const TensorType& input = call.inputs[0];
    const auto axes = reduced_axes(call.attrs, input.shape.size());
    const TensorType dense{outputs[0].dtype, reduced_shape(input.shape, axes, false)};
    if (axes.empty()) {
      return kernels::plan_copy(device_class, input.dtype, {input.elements()}, {1});
    }
    if (rule.is_arg) return kernels::plan_arg(device_class, rule.kind, input, axes[0]);
    return kernels::plan_reduce(device_class, rule.kind, input, axes, dense);
  };
  return op;
}

kernels::FusedPointwise chain_of(const OpCall& call) {
  return parse_chain(FusedKind::kPointwise, string_attr(call.attrs, "program"), call.inputs);
}

// What `reduction` makes of the chain's result.
OpCall reduction_of(const OpCall& call, const TensorType& whole) {
  return make_call(string_attr(call.attrs, "reduction"),
                   {{"axes", call.attrs.at("axes")}, {"keep_dims", call.attrs.at("keep_dims")}},
                   {whole});
}

OpDef fused_reduce() {
  OpDef op;
  op.name = "fused_reduce";
  op.max_inputs = 64;
  op.is_internal = true;
  op.attrs = {{"program", std::string(), true},
              {"reduction", std::string(), true},
              {"axes", std::vector<int64_t>{}},
              {"keep_dims", int64_t{0}}};
  op.infer = [](const OpCall& call) {
    return infer(reduction_of(call, chain_of(call).steps.back().type));
  };
  op.plan = [](kernels::DeviceClass device_class, const OpCall& call,
               const std::vector<TensorType>& outputs) {
    const kernels::FusedPointwise chain = chain_of(call);
    const Shape& shape = chain.steps.back().type.shape;
    const auto axes = reduced_axes(call.attrs, shape.size());
    const std::string kind =
        string_attr(call.attrs, "reduction").substr(std::string("reduce_").size());
    return kernels::plan_fused_reduce(device_class, kind, chain, axes,
                                      {outputs[0].dtype, reduced_shape(shape, axes, false)});
  };
  return op;
}

// MindSpore's CumSum: exclusive leaves out the element itself, reverse begins at the end.
OpDef cumsum() {
  OpDef op;
  op.name = "cumsum";
  op.attrs = {{"axis", int64_t{0}, /*is_required=*/true},
              {"exclusive", int64_t{0}},
              {"reverse", int64_t{0}}};
  op.infer = [](const OpCall& call) -> std::vector<TensorType> {
    const DType dtype = call.inputs[0].dtype;
    if (dtype != DType::kF32 && dtype != DType::kI32 && dtype != DType::kI64) {
      fail(Code::kUnimplemented, "has no kernel for {}", name_of(dtype));
    }
    reduced_axes(call.attrs, call.inputs[0].shape.size());
    return {call.inputs[0]};
  };
  op.plan = [](kernels::DeviceClass device_class, const OpCall& call,
               const std::vector<TensorType>&) {
    const auto axes = reduced_axes(call.attrs, call.inputs[0].shape.size());
    return kernels::plan_cumsum(device_class, call.inputs[0], axes[0],
                                int_attr(call.attrs, "exclusive") != 0,
                                int_attr(call.attrs, "reverse") != 0);
  };
  return op;
}

}  // namespace

std::vector<OpDef> reduce_ops() {
  const std::vector<DType> f32{DType::kF32}, booleans{DType::kBool};
  const std::vector<DType> sums{DType::kF32, DType::kI32, DType::kI64};
  const std::vector<DType> ordered{DType::kF32, DType::kI32, DType::kI64, DType::kU8};
  std::vector<OpDef> ops;
  for (const Rule& rule : {
           Rule{"reduce_sum", "sum", sums, true, false},
           Rule{"reduce_mean", "mean", f32, true, false},
           Rule{"reduce_max", "max", ordered, false, false},
           Rule{"reduce_min", "min", ordered, false, false},
           Rule{"reduce_prod", "prod", sums, true, false},
           Rule{"reduce_any", "any", booleans, true, false},
           Rule{"reduce_all", "all", booleans, true, false},
           Rule{"argmax", "argmax", ordered, false, true},
           Rule{"argmin", "argmin", ordered, false, true},
       }) {
    ops.push_back(reduction(rule));
  }
  ops.push_back(cumsum());
  ops.push_back(fused_reduce());
  return ops;
}

}  // namespace ballast::graph
