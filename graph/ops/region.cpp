// Ops that take tensors apart and put them together: slice, slice_grad, pad, concat, split, flip;
// and those that make one from nothing: fill, arange.
#include "graph/ops/shape_ops.h"

#include <algorithm>
#include <cmath>

namespace ballast::graph {

using device::Code;
using device::fail;
using kernels::DeviceClass;
using kernels::Slice;

namespace {

constexpr size_t kMaxParts = 4096;

Slice slice_of(const OpCall& call) {
  return {ints_attr(call.attrs, "begin"), ints_attr(call.attrs, "strides")};
}

// Whether the indices begin + i * stride, i < size, lie in [0, extent).
void check_slice(const Shape& whole, const Slice& slice, const Shape& size) {
  if (slice.begin.size() != whole.size() || slice.steps.size() != whole.size() ||
      size.size() != whole.size()) {
    fail(Code::kInvalidArgument, "begin {}, size {} and strides {} need {} numbers each",
         to_string(slice.begin), to_string(size), to_string(slice.steps), whole.size());
  }
  for (size_t d = 0; d < whole.size(); ++d) {
    if (slice.steps[d] == 0) fail(Code::kInvalidArgument, "the stride of axis {} is 0", d);
    if (size[d] < 0) fail(Code::kInvalidArgument, "the size of axis {} is {}", d, size[d]);
    if (size[d] == 0) continue;
    int64_t last = 0;
    const bool is_absurd = __builtin_mul_overflow(size[d] - 1, slice.steps[d], &last) ||
                           __builtin_add_overflow(slice.begin[d], last, &last);
    if (is_absurd || std::min(slice.begin[d], last) < 0 ||
        std::max(slice.begin[d], last) >= whole[d]) {
      fail(Code::kInvalidArgument,
           "{} elements from {} on in steps of {} leave axis {} of extent {}", size[d],
           slice.begin[d], slice.steps[d], d, whole[d]);
    }
  }
}

OpDef slice() {
  OpDef op;
  op.name = "slice";
  const std::vector<int64_t> ints;
  op.attrs = {{"begin", ints, true}, {"size", ints, true}, {"strides", ints, true}};
  op.infer = [](const OpCall& call) -> std::vector<TensorType> {
    const TensorType& input = call.inputs[0];
    check_slice(input.shape, slice_of(call), ints_attr(call.attrs, "size"));
    return {{input.dtype, ints_attr(call.attrs, "size")}};
  };
  op.plan = [](DeviceClass c, const OpCall& call, const std::vector<TensorType>& outputs) {
    return kernels::plan_slice(c, call.inputs[0], slice_of(call), outputs[0]);
  };
  return op;
}

OpDef slice_grad() {
  OpDef op;
  op.name = "slice_grad";
  const std::vector<int64_t> ints;
  op.attrs = {{"shape", ints, true}, {"begin", ints, true}, {"strides", ints, true}};
  op.infer = [](const OpCall& call) -> std::vector<TensorType> {
    const TensorType result{call.inputs[0].dtype, ints_attr(call.attrs, "shape")};
    check_size(result);
    check_slice(result.shape, slice_of(call), call.inputs[0].shape);
    return {result};
  };
  op.plan = [](DeviceClass c, const OpCall& call, const std::vector<TensorType>& outputs) {
    return kernels::plan_embed(c, call.inputs[0], slice_of(call), 0, outputs[0]);
  };
  return op;
}

OpDef pad() {
  OpDef op;
  op.name = "pad";
  op.attrs = {{"paddings", std::vector<int64_t>{}, true}, {"value", 0.0}};
  op.infer = [](const OpCall& call) -> std::vector<TensorType> {
    const auto& paddings = ints_attr(call.attrs, "paddings");
    TensorType result = call.inputs[0];
    check_fits(std::get<double>(call.attrs.at("value")), result.dtype);
    if (paddings.size() != 2 * result.shape.size()) {
      fail(Code::kInvalidArgument, "paddings {} need 2 numbers for each of {} axes",
           to_string(paddings), result.shape.size());
    }
    for (size_t i = 0; i < paddings.size(); ++i) {
      if (paddings[i] < 0) fail(Code::kInvalidArgument, "a padding is {}", paddings[i]);
      if (__builtin_add_overflow(result.shape[i / 2], paddings[i], &result.shape[i / 2])) {
        fail(Code::kInvalidArgument, "paddings {} are too large", to_string(paddings));
      }
    }
    return {result};
  };
  op.plan = [](DeviceClass c, const OpCall& call, const std::vector<TensorType>& outputs) {
    const auto& paddings = ints_attr(call.attrs, "paddings");
    Slice slice;
    for (size_t i = 0; i < paddings.size(); i += 2) {
      slice.begin.push_back(paddings[i]);
      slice.steps.push_back(1);
    }
    const double value = std::get<double>(call.attrs.at("value"));
    return kernels::plan_embed(c, call.inputs[0], slice, value, outputs[0]);
  };
  return op;
}

int64_t checked_axis(const OpCall& call, size_t rank) {
  const int64_t axis = int_attr(call.attrs, "axis");
  const auto end = static_cast<int64_t>(rank);
  if (axis < 0 || axis >= end) {
    fail(Code::kInvalidArgument, "axis {} is not in [0, {})", axis, rank);
  }
  return axis;
}

OpDef concat() {
  OpDef op;
  op.name = "concat";
  op.max_inputs = kMaxParts;
  op.attrs = {{"axis", int64_t{0}}};
  op.infer = [](const OpCall& call) -> std::vector<TensorType> {
    TensorType result = call.inputs[0];
    const int64_t axis = checked_axis(call, result.shape.size());
    for (size_t i = 1; i < call.inputs.size(); ++i) {
      TensorType part = call.inputs[i];
      if (part.shape.size() == result.shape.size()) part.shape[axis] = result.shape[axis];
      if (part != result) {
        fail(Code::kInvalidArgument, "input {} differs from input 0 in more than axis {}", i, axis);
      }
      result.shape[axis] += call.inputs[i].shape[axis];
    }
    return {result};
  };
  op.plan = [](DeviceClass c, const OpCall& call, const std::vector<TensorType>& outputs) {
    return kernels::plan_concat(c, call.inputs, int_attr(call.attrs, "axis"), outputs[0]);
  };
  return op;
}

OpDef split() {
  OpDef op;
  op.name = "split";
  op.attrs = {{"axis", int64_t{0}}, {"sizes", std::vector<int64_t>{}, true}};
  op.infer = [](const OpCall& call) {
    const TensorType& input = call.inputs[0];
    const int64_t axis = checked_axis(call, input.shape.size());
    const auto& sizes = ints_attr(call.attrs, "sizes");
    int64_t total = 0;
    bool fits = !sizes.empty() && sizes.size() <= kMaxParts;
    std::vector<TensorType> outputs;
    for (int64_t size : sizes) {
      fits = fits && size >= 0 && !__builtin_add_overflow(total, size, &total);
      outputs.push_back(input);
      outputs.back().shape[axis] = size;
    }
    if (!fits || total != input.shape[axis]) {
      fail(Code::kInvalidArgument, "sizes {} do not make up the extent {} of axis {}",
           to_string(sizes), input.shape[axis], axis);
    }
    return outputs;
  };
  op.plan = [](DeviceClass c, const OpCall& call, const std::vector<TensorType>& outputs) {
    return kernels::plan_split(c, call.inputs[0], int_attr(call.attrs, "axis"), outputs);
  };
  return op;
}

OpDef flip() {
  OpDef op;
  op.name = "flip";
  op.attrs = {{"axes", std::vector<int64_t>{}, true}};
  op.infer = [](const OpCall& call) -> std::vector<TensorType> {
    std::vector<int64_t> axes = ints_attr(call.attrs, "axes");
    const auto rank = static_cast<int64_t>(call.inputs[0].shape.size());
    std::sort(axes.begin(), axes.end());
    const bool is_repeated = std::adjacent_find(axes.begin(), axes.end()) != axes.end();
    if (is_repeated || (!axes.empty() && (axes.front() < 0 || axes.back() >= rank))) {
      fail(Code::kInvalidArgument, "axes {} are not different axes of rank {}",
           to_string(ints_attr(call.attrs, "axes")), rank);
    }
    return {call.inputs[0]};
  };
  op.plan = [](DeviceClass c, const OpCall& call, const std::vector<TensorType>& outputs) {
    const Shape& shape = outputs[0].shape;
    Slice slice{Shape(shape.size(), 0), Shape(shape.size(), 1)};
    for (int64_t axis : ints_attr(call.attrs, "axes")) {
      slice.begin[axis] = shape[axis] - 1;
      slice.steps[axis] = -1;
    }
    return kernels::plan_slice(c, call.inputs[0], slice, outputs[0]);
  };
  return op;
}

DType dtype_attr(const OpCall& call) {
  const int64_t code = int_attr(call.attrs, "dtype");
  if (code < static_cast<int64_t>(DType::kF32) || code > static_cast<int64_t>(DType::kBool)) {
    fail(Code::kInvalidArgument, "dtype {} is no element type", code);
  }
  return static_cast<DType>(code);
}

OpDef fill() {
  OpDef op;
  op.name = "fill";
  op.min_inputs = op.max_inputs = 0;
  op.attrs = {{"shape", std::vector<int64_t>{}, true},
              {"value", 0.0, true},
              {"dtype", static_cast<int64_t>(DType::kF32)}};
  op.infer = [](const OpCall& call) -> std::vector<TensorType> {
    const DType dtype = dtype_attr(call);
    check_fits(std::get<double>(call.attrs.at("value")), dtype);
    return {{dtype, ints_attr(call.attrs, "shape")}};
  };
  op.plan = [](DeviceClass c, const OpCall& call, const std::vector<TensorType>& outputs) {
    return kernels::plan_fill(c, outputs[0], std::get<double>(call.attrs.at("value")));
  };
  return op;
}

OpDef arange() {
  OpDef op;
  op.name = "arange";
  op.min_inputs = op.max_inputs = 0;
  op.attrs = {{"count", int64_t{0}, true},
              {"start", 0.0},
              {"step", 1.0},
              {"dtype", static_cast<int64_t>(DType::kF32)}};
  op.infer = [](const OpCall& call) -> std::vector<TensorType> {
    const DType dtype = dtype_attr(call);
    if (dtype != DType::kF32 && dtype != DType::kI32 && dtype != DType::kI64) {
      fail(Code::kInvalidArgument, "dtype is {}, expected f32, i32 or i64", name_of(dtype));
    }
    const int64_t count = int_attr(call.attrs, "count");
    const double start = std::get<double>(call.attrs.at("start"));
    const double step = std::get<double>(call.attrs.at("step"));
    if (dtype != DType::kF32 && count > 0) {
      check_fits(step, DType::kI64);
      for (int64_t i : {int64_t{0}, count - 1}) {
        check_fits(start + static_cast<double>(i) * step, dtype);
      }
    }
    return {{dtype, {count}}};
  };
  op.plan = [](DeviceClass c, const OpCall& call, const std::vector<TensorType>& outputs) {
    return kernels::plan_arange(c, outputs[0], std::get<double>(call.attrs.at("start")),
                                std::get<double>(call.attrs.at("step")));
  };
  return op;
}

}  // namespace

std::vector<OpDef> region_ops() {
  return {slice(), slice_grad(), pad(), concat(), split(), flip(), fill(), arange()};
}

}  // namespace ballast::graph
