// Taking tensors apart and putting them together.
#include "frontend/ops/call.h"
#include "frontend/ops/ops.h"

#include <algorithm>
#include <cmath>

namespace ballast::ops {

namespace {

// Python's slice(begin, end, stride).indices(extent), and how many there are.
struct Bounds {
  int64_t begin, count;
};
Bounds bounds_of(int64_t begin, int64_t end, int64_t stride, int64_t extent) {
  const int64_t lowest = stride > 0 ? 0 : -1, highest = stride > 0 ? extent : extent - 1;
  const auto inside = [&](int64_t bound, int64_t if_none) {
    if (bound == kNone) return if_none;
    return std::clamp(bound < 0 ? bound + extent : bound, lowest, highest);
  };
  const int64_t first = inside(begin, stride > 0 ? lowest : highest);
  const int64_t last = inside(end, stride > 0 ? highest : lowest);
  const int64_t distance = stride > 0 ? last - first : first - last;
  const int64_t step = std::abs(stride);
  return {first, distance <= 0 ? 0 : 1 + (distance - 1) / step};
}

Tensor take_part(const Tensor& x, const std::vector<int64_t>& begin,
                 const std::vector<int64_t>& size, const std::vector<int64_t>& strides,
                 const Where& where) {
  return apply_primitive("slice", {x}, {{"begin", begin}, {"size", size}, {"strides", strides}},
                         where)[0];
}

// x[..., begin : begin + size, ...] along one axis.
Tensor along(const Tensor& x, int64_t axis, int64_t begin, int64_t size, const Where& where) {
  std::vector<int64_t> first(x.shape().size(), 0), extents = x.shape();
  first[static_cast<size_t>(axis)] = begin;
  extents[static_cast<size_t>(axis)] = size;
  return take_part(x, first, extents, std::vector<int64_t>(extents.size(), 1), where);
}

}  // namespace

Tensor strided_slice(const Operand& x, std::vector<int64_t> begin, std::vector<int64_t> end,
                     std::vector<int64_t> strides) {
  const Tensor tensor = x.tensor();
  if (strides.empty()) strides.assign(begin.size(), 1);
  const bool is_zero = std::count(strides.begin(), strides.end(), 0) > 0;
  if (begin.size() != end.size() || begin.size() != strides.size() ||
      begin.size() > tensor.shape().size() || is_zero) {
    refuse(x.where(),
           "[strided_slice] begin {}, end {} and strides {} need equally many numbers, at most one "
           "for each axis of {}, and strides that are not 0",
           to_string(begin), to_string(end), to_string(strides), to_string(tensor.type()));
  }
  std::vector<int64_t> size = tensor.shape();
  for (size_t d = 0; d < begin.size(); ++d) {
    const Bounds bounds = bounds_of(begin[d], end[d], strides[d], size[d]);
    begin[d] = bounds.begin;
    size[d] = bounds.count;
  }
  begin.resize(size.size(), 0);
  strides.resize(size.size(), 1);
  return take_part(tensor, begin, size, strides, x.where());
}

Tensor slice(const Operand& x, const std::vector<int64_t>& begin, std::vector<int64_t> size) {
  const Tensor tensor = x.tensor();
  for (size_t d = 0; d < std::min({size.size(), begin.size(), tensor.shape().size()}); ++d) {
    if (size[d] == -1) size[d] = tensor.shape()[d] - begin[d];
  }
  return take_part(tensor, begin, size, std::vector<int64_t>(tensor.shape().size(), 1), x.where());
}

std::vector<Tensor> split(const Operand& x, const std::vector<int64_t>& sizes, int64_t axis) {
  const Tensor tensor = x.tensor();
  axis = from_start(axis, tensor.rank());
  return apply_primitive("split", {tensor}, {{"axis", axis}, {"sizes", sizes}}, x.where());
}

std::vector<Tensor> split(const Operand& x, int64_t parts, int64_t axis) {
  const Tensor tensor = x.tensor();
  const int64_t at = checked_axis("split", axis, tensor.rank(), x.where());
  const int64_t extent = tensor.shape()[static_cast<size_t>(at)];
  if (parts < 1 || extent % parts != 0) {
    refuse(x.where(), "[split] extent {} of axis {} does not divide into {} equal parts", extent,
           axis, parts);
  }
  CallScope scope(x.where());
  return split(tensor, std::vector<int64_t>(static_cast<size_t>(parts), extent / parts), at);
}

Tensor concat(const std::vector<Tensor>& parts, int64_t axis, Where where) {
  if (parts.empty()) refuse(where, "[concat] there are no tensors to put together");
  axis = from_start(axis, parts[0].rank());
  return apply_primitive("concat", parts, {{"axis", axis}}, where)[0];
}

Tensor stack(const std::vector<Tensor>& parts, int64_t axis, Where where) {
  if (parts.empty()) refuse(where, "[stack] there are no tensors to put together");
  CallScope scope(where);
  std::vector<Tensor> slabs;
  const int64_t at = checked_axis("stack", axis, parts[0].rank() + 1, where);
  for (const Tensor& part : parts) {
    if (part.type() != parts[0].type()) {
      refuse(where, "[stack] {} and {} differ", to_string(parts[0].type()), to_string(part.type()));
    }
    slabs.push_back(expand_dims(part, at));
  }
  return concat(slabs, at);
}

Tensor flip(const Operand& x, std::vector<int64_t> axes) {
  const Tensor tensor = x.tensor();
  if (axes.empty()) {
    for (int64_t axis = 0; axis < tensor.rank(); ++axis) axes.push_back(axis);
  }
  for (int64_t& axis : axes) axis = from_start(axis, tensor.rank());
  return apply_primitive("flip", {tensor}, {{"axes", std::move(axes)}}, x.where())[0];
}

Tensor roll(const Operand& x, int64_t shift, int64_t axis) {
  const Tensor tensor = x.tensor();
  const int64_t at = checked_axis("roll", axis, tensor.rank(), x.where());
  const int64_t extent = tensor.shape()[static_cast<size_t>(at)];
  const int64_t turn = extent == 0 ? 0 : ((shift % extent) + extent) % extent;
  if (turn == 0) return tensor;
  CallScope scope(x.where());
  return concat({along(tensor, at, extent - turn, turn, x.where()),
                 along(tensor, at, 0, extent - turn, x.where())},
                at);
}

namespace {

// One axis of numpy.pad's modes that repeat elements.
Tensor pad_axis(const Tensor& x, int64_t axis, std::pair<int64_t, int64_t> padding,
                const std::string& mode, const Where& where) {
  const auto [before, after] = padding;
  const int64_t extent = x.shape()[static_cast<size_t>(axis)];
  const bool is_edge = mode == "edge", is_wrapped = mode == "wrap";
  const int64_t mirror = mode == "reflect" ? 1 : 0;  // as many elements are no image
  const int64_t available = is_edge && extent > 0 ? kNone : extent - mirror;
  if (before < 0 || after < 0 || std::max(before, after) > std::max<int64_t>(available, 0)) {
    refuse(where, "[pad] {} and {} elements cannot be taken from axis {} of {}", before, after,
           axis, to_string(x.type()));
  }
  std::vector<Tensor> parts;
  const auto add = [&](int64_t begin, int64_t size) {
    if (size == 0) return;
    const Tensor part = along(x, axis, begin, is_edge ? 1 : size, where);
    if (is_edge) {
      Shape shape = x.shape();
      shape[static_cast<size_t>(axis)] = size;
      parts.push_back(broadcast_to(part, shape));
    } else {
      parts.push_back(is_wrapped ? part : flip(part, {axis}));
    }
  };
  add(is_wrapped ? extent - before : mirror, before);
  parts.push_back(x);
  add(is_wrapped ? 0 : extent - mirror - (is_edge ? 1 : after), after);
  return parts.size() == 1 ? x : concat(parts, axis);
}

}  // namespace

Tensor pad(const Operand& x, const Paddings& paddings, double value, const std::string& mode) {
  Tensor tensor = x.tensor();
  if (static_cast<int64_t>(paddings.size()) != tensor.rank()) {
    refuse(x.where(), "[pad] {} paddings are given for {}", paddings.size(),
           to_string(tensor.type()));
  }
  CallScope scope(x.where());
  if (mode == "constant") {
    std::vector<int64_t> flat;
    for (const auto& [before, after] : paddings) flat.insert(flat.end(), {before, after});
    return apply_primitive("pad", {tensor}, {{"paddings", flat}, {"value", value}}, x.where())[0];
  }
  if (mode != "edge" && mode != "reflect" && mode != "symmetric" && mode != "wrap") {
    refuse(x.where(), "[pad] mode is \"{}\", expected constant, edge, reflect, symmetric or wrap",
           mode);
  }
  for (int64_t axis = 0; axis < tensor.rank(); ++axis) {
    tensor = pad_axis(tensor, axis, paddings[static_cast<size_t>(axis)], mode, x.where());
  }
  return tensor;
}

Tensor arange(double start, double stop, double step, DType dtype, Where where) {
  const double count = std::ceil((stop - start) / step);
  if (!(count < 9e15)) refuse(where, "[arange] {} to {} in steps of {}", start, stop, step);
  if (dtype != DType::kF32 && dtype != DType::kI32 && dtype != DType::kI64) {
    refuse(where, "[arange] dtype is {}, expected f32, i32 or i64", name_of(dtype));
  }
  return apply_primitive("arange", {},
                         {{"count", static_cast<int64_t>(std::max(count, 0.0))},
                          {"start", start},
                          {"step", step},
                          {"dtype", static_cast<int64_t>(dtype)}},
                         where)[0];
}

}  // namespace ballast::ops
