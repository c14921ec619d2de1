// Slices, padding, concatenation, and tensors made of nothing.
#include "tests/op_table.h"
#include "tests/samples.h"

namespace ballast::tests {

namespace {

using Ints = std::vector<int64_t>;
using Arrays = std::vector<HostArray>;

// Calls f(position in the part, position in the whole) for a slice of `whole`.
template <class F>
void for_each_sliced(const Shape& part, const Shape& whole, const Attrs& attrs, const F& f) {
  const Ints &begin = ints_attr(attrs, "begin"), &strides = ints_attr(attrs, "strides");
  const auto count = static_cast<size_t>(TensorType{DType::kF32, part}.elements());
  for (size_t i = 0; i < count; ++i) {
    Index at = index_of(i, part);
    for (size_t d = 0; d < at.size(); ++d) at[d] = begin[d] + at[d] * strides[d];
    f(i, flat_of(at, whole));
  }
}

void slice(const Arrays& inputs, const Attrs& attrs, Arrays& outputs) {
  for_each_sliced(
      outputs[0].type.shape, inputs[0].type.shape, attrs,
      [&](size_t part, size_t whole) { outputs[0].values[part] = inputs[0].values[whole]; });
}

void slice_grad(const Arrays& inputs, const Attrs& attrs, Arrays& outputs) {
  std::fill(outputs[0].values.begin(), outputs[0].values.end(), 0);
  for_each_sliced(
      inputs[0].type.shape, outputs[0].type.shape, attrs,
      [&](size_t part, size_t whole) { outputs[0].values[whole] = inputs[0].values[part]; });
}

void pad(const Arrays& inputs, const Attrs& attrs, Arrays& outputs) {
  const Ints& paddings = ints_attr(attrs, "paddings");
  for (size_t i = 0; i < outputs[0].values.size(); ++i) {
    Index at = index_of(i, outputs[0].type.shape);
    bool is_inside = true;
    for (size_t d = 0; d < at.size(); ++d) {
      at[d] -= paddings[2 * d];
      is_inside = is_inside && at[d] >= 0 && at[d] < inputs[0].type.shape[d];
    }
    outputs[0].values[i] = is_inside ? inputs[0].values[flat_of(at, inputs[0].type.shape)]
                                     : attr_or<double>(attrs, "value", 0);
  }
}

// Parts of `whole` one after another along the axis; f(part, element of it, element of the whole).
template <class F>
void for_each_part(const Arrays& parts, const Shape& whole, const Attrs& attrs, const F& f) {
  const auto axis = static_cast<size_t>(int_attr(attrs, "axis"));
  int64_t begin = 0;
  for (size_t part = 0; part < parts.size(); ++part) {
    for (size_t i = 0; i < parts[part].values.size(); ++i) {
      Index at = index_of(i, parts[part].type.shape);
      at[axis] += begin;
      f(part, i, flat_of(at, whole));
    }
    begin += parts[part].type.shape[axis];
  }
}

void concat(const Arrays& inputs, const Attrs& attrs, Arrays& outputs) {
  for_each_part(inputs, outputs[0].type.shape, attrs, [&](size_t part, size_t i, size_t whole) {
    outputs[0].values[whole] = inputs[part].values[i];
  });
}

void split(const Arrays& inputs, const Attrs& attrs, Arrays& outputs) {
  for_each_part(outputs, inputs[0].type.shape, attrs, [&](size_t part, size_t i, size_t whole) {
    outputs[part].values[i] = inputs[0].values[whole];
  });
}

void flip(const Arrays& inputs, const Attrs& attrs, Arrays& outputs) {
  const Shape& shape = outputs[0].type.shape;
  for (size_t i = 0; i < outputs[0].values.size(); ++i) {
    Index at = index_of(i, shape);
    for (int64_t axis : ints_attr(attrs, "axes")) {
      const auto d = static_cast<size_t>(axis);
      at[d] = shape[d] - 1 - at[d];
    }
    outputs[0].values[i] = inputs[0].values[flat_of(at, shape)];
  }
}

void fill(const Arrays&, const Attrs& attrs, Arrays& outputs) {
  const double value = attr_or<double>(attrs, "value", 0);
  const bool is_bool = outputs[0].type.dtype == DType::kBool;
  for (double& element : outputs[0].values) element = is_bool ? truth(value != 0) : value;
}

void arange(const Arrays&, const Attrs& attrs, Arrays& outputs) {
  const double start = attr_or<double>(attrs, "start", 0), step = attr_or<double>(attrs, "step", 1);
  for (size_t i = 0; i < outputs[0].values.size(); ++i) {
    outputs[0].values[i] = start + static_cast<double>(i) * step;
  }
}

Types padded(const Types& in, const Attrs& attrs) {
  const Ints& paddings = ints_attr(attrs, "paddings");
  Types result = {in[0]};
  for (size_t d = 0; d < in[0].shape.size(); ++d) {
    result[0].shape[d] += paddings[2 * d] + paddings[2 * d + 1];
  }
  return result;
}

Types joined(const Types& in, const Attrs& attrs) {
  const auto axis = static_cast<size_t>(int_attr(attrs, "axis"));
  Types result = {in[0]};
  for (size_t i = 1; i < in.size(); ++i) result[0].shape[axis] += in[i].shape[axis];
  return result;
}

Types parts(const Types& in, const Attrs& attrs) {
  Types results;
  for (int64_t size : ints_attr(attrs, "sizes")) {
    results.push_back(in[0]);
    results.back().shape[static_cast<size_t>(int_attr(attrs, "axis"))] = size;
  }
  return results;
}

void add_slices(OpFamilies& table) {
  const auto attrs = [](Ints begin, Ints size, Ints strides) {
    return Attrs{{"begin", begin}, {"size", size}, {"strides", strides}};
  };
  table.add("slice", {real({7}, -2, 2)}, attrs({2}, {3}, {1}), true);
  table.add("slice", {real({4, 5}, -2, 2)}, attrs({3, 1}, {2, 2}, {-2, 3}), true);
  table.add("slice", {real({}, -2, 2)}, attrs({}, {}, {}), true);
  table.add("slice", {real({5}, -2, 2)}, attrs({7}, {0}, {1}));
  table.add("slice", {real({3, 40}, -2, 2)}, attrs({0, 39}, {3, 40}, {1, -1}));
  table.add("slice", {real({5, 67, 3}, -2, 2)}, attrs({1, 5, 0}, {3, 57, 2}, {1, 1, 1}));
  table.add("slice", {whole({6, 37}, 99)}, attrs({5, 3}, {3, 17}, {-2, 2}));
  table.add("slice", {whole({6, 37}, 99, DType::kI64)}, attrs({0, 1}, {6, 33}, {1, 1}));
  table.add("slice", {boolean({6, 38})}, attrs({0, 2}, {6, 34}, {1, 1}));
  table.add("slice", {whole({9, 33}, 99, DType::kU8)}, attrs({0, 1}, {9, 31}, {1, 1}));
  const auto grads = [](Ints shape, Ints begin, Ints strides) {
    return Attrs{{"shape", shape}, {"begin", begin}, {"strides", strides}};
  };
  table.add("slice_grad", {real({3}, -2, 2)}, grads({7}, {2}, {1}), true);
  table.add("slice_grad", {real({2, 2}, -2, 2)}, grads({4, 5}, {3, 1}, {-2, 3}), true);
  table.add("slice_grad", {real({3, 4}, -2, 2)}, grads({3, 4}, {2, 0}, {-1, 1}), true);
  table.add("slice_grad", {real({0, 4}, -2, 2)}, grads({3, 4}, {0, 0}, {1, 1}));
  table.add("slice_grad", {whole({3, 17}, 99)}, grads({6, 37}, {5, 3}, {-2, 2}));
}

void add_padding(OpFamilies& table) {
  const auto attrs = [](Ints paddings, double value) {
    return Attrs{{"paddings", paddings}, {"value", value}};
  };
  table.add("pad", {real({5}, -2, 2)}, attrs({2, 1}, 0), true);
  table.add("pad", {real({2, 3}, -2, 2)}, attrs({0, 0, 1, 2}, 7.5), true);
  table.add("pad", {real({2, 3}, -2, 2)}, attrs({1, 0, 0, 0}, -kNaN));
  table.add("pad", {real({}, -2, 2)}, attrs({}, 0), true);
  table.add("pad", {real({0, 3}, -2, 2)}, attrs({1, 1, 1, 1}, 3));
  table.add("pad", {real({2, 3, 28, 28}, -2, 2)}, attrs({0, 0, 0, 0, 1, 1, 1, 1}, 0));
  table.add("pad", {real({3, 4}, -2, 2)}, attrs({0, 0, 0, 0}, 3));
  table.add("pad", {whole({3, 33}, 99)}, attrs({1, 2, 3, 4}, -5));
  table.add("pad", {whole({3, 33}, 99, DType::kI64)}, attrs({1, 2, 3, 4}, -5));
  table.add("pad", {whole({3, 33}, 99, DType::kU8)}, attrs({1, 2, 3, 4}, 200));
  table.add("pad", {boolean({3, 20})}, attrs({1, 1, 2, 2}, 1));
}

void add_joins(OpFamilies& table) {
  const auto attrs = [](int64_t axis) { return Attrs{{"axis", axis}}; };
  table.add("concat", {real({2, 3}, -2, 2), real({1, 3}, -2, 2)}, attrs(0), true);
  table.add("concat", {real({2, 3}, -2, 2), real({2, 1}, -2, 2), real({2, 2}, -2, 2)}, attrs(1),
            true);
  table.add("concat", {real({4}, -2, 2)}, attrs(0), true);
  table.add("concat", {real({0, 3}, -2, 2), real({2, 3}, -2, 2)}, attrs(0));
  table.add("concat", {real({5, 19}, -2, 2), real({5, 64}, -2, 2)}, attrs(1));
  table.add("concat", {real({2, 5, 9}, -2, 2), real({2, 1, 9}, -2, 2)}, attrs(1));
  table.add("concat", {boolean({3, 17}), boolean({3, 18})}, attrs(1));
  table.add("concat", {whole({3, 17}, 9, DType::kI64), whole({3, 1}, 9, DType::kI64)}, attrs(1));
  const auto sizes = [](int64_t axis, Ints parts) {
    return Attrs{{"axis", axis}, {"sizes", parts}};
  };
  table.add("split", {real({3, 4}, -2, 2)}, sizes(1, {1, 3}), true);
  table.add("split", {real({3, 4}, -2, 2)}, sizes(0, {1, 1, 1}), true);
  table.add("split", {real({5}, -2, 2)}, sizes(0, {5}), true);
  table.add("split", {real({4, 3}, -2, 2)}, sizes(0, {0, 4}));
  table.add("split", {real({4, 3 * 64}, -2, 2)}, sizes(1, {64, 64, 64}));
  table.add("split", {whole({2, 11, 5}, 9)}, sizes(1, {2, 9}));
  const auto axes = [](Ints list) { return Attrs{{"axes", list}}; };
  table.add("flip", {real({5}, -2, 2)}, axes({0}), true);
  table.add("flip", {real({2, 3, 4}, -2, 2)}, axes({2, 0}), true);
  table.add("flip", {real({2, 3}, -2, 2)}, axes({}), true);
  table.add("flip", {real({3, 0}, -2, 2)}, axes({1}));
  table.add("flip", {real({7, 130}, -2, 2)}, axes({1}));
  table.add("flip", {boolean({7, 37})}, axes({0}));
}

void add_makers(OpFamilies& table) {
  const auto filled = [](Shape shape, double value, DType dtype) {
    return Attrs{{"shape", shape}, {"value", value}, {"dtype", static_cast<int64_t>(dtype)}};
  };
  table.add("fill", {}, filled({3, 5}, 0.1, DType::kF32));
  table.add("fill", {}, filled({}, -1, DType::kF32));
  table.add("fill", {}, filled({0, 2}, -1, DType::kF32));
  table.add("fill", {}, filled({1000}, -3, DType::kI32));
  table.add("fill", {}, filled({37}, -3, DType::kI64));
  table.add("fill", {}, filled({33}, 255, DType::kU8));
  table.add("fill", {}, filled({34}, 0.5, DType::kBool));
  const auto counted = [](int64_t count, double start, double step, DType dtype) {
    return Attrs{
        {"count", count}, {"start", start}, {"step", step}, {"dtype", static_cast<int64_t>(dtype)}};
  };
  table.add("arange", {}, counted(0, 0, 1, DType::kF32));
  table.add("arange", {}, counted(9, -2.5, 0.25, DType::kF32));
  table.add("arange", {}, counted(20000, 3, -2, DType::kI32));
  table.add("arange", {}, counted(5, 1e12, -7, DType::kI64));
}

}  // namespace

void add_region(OpFamilies& table) {
  table.references.insert({
      {"arange", arange},
      {"concat", concat},
      {"fill", fill},
      {"flip", flip},
      {"pad", pad},
      {"slice", slice},
      {"slice_grad", slice_grad},
      {"split", split},
  });
  table.types.insert({
      {"arange",
       [](const Types&, const Attrs& attrs) {
         return Types{{dtype_attr(attrs), {int_attr(attrs, "count")}}};
       }},
      {"concat", joined},
      {"fill",
       [](const Types&, const Attrs& attrs) {
         return Types{{dtype_attr(attrs), ints_attr(attrs, "shape")}};
       }},
      {"flip", like({0})},
      {"pad", padded},
      {"slice", of_shape("size")},
      {"slice_grad", of_shape("shape")},
      {"split", parts},
  });
  add_slices(table);
  add_padding(table);
  add_joins(table);
  add_makers(table);
}

void draw_region(OpFamilies& table, Draw& draw) {
  const HostArray x = typed(draw.shape(1 + draw.below(5), 60000), draw.element());
  const Shape& shape = x.type.shape;
  Ints begin, size, strides, paddings, axes;
  for (size_t d = 0; d < shape.size(); ++d) {
    const int64_t extent = shape[d];
    size.push_back(extent == 0 ? 0 : draw.extent_or_none(extent));
    const int64_t steps = std::max<int64_t>(size[d] - 1, 1);
    const int64_t longest = std::max<int64_t>(1, (extent - 1) / steps);
    const int64_t stride = draw.one_in(2) ? 1 : 1 + draw.below(std::min<int64_t>(longest, 4));
    const int64_t room = extent - 1 - (size[d] - 1) * stride;
    const int64_t first = size[d] == 0 ? 0 : draw.below(room + 1);
    const bool is_backward = draw.one_in(4);
    strides.push_back(is_backward ? -stride : stride);
    begin.push_back(is_backward && size[d] > 0 ? first + (size[d] - 1) * stride : first);
    for (int side = 0; side < 2; ++side) paddings.push_back(draw.one_in(2) ? 0 : draw.below(9));
    if (draw.one_in(2)) axes.push_back(static_cast<int64_t>(d));
  }
  table.add("slice", {x}, {{"begin", begin}, {"size", size}, {"strides", strides}});
  table.add("slice_grad", {typed(size, x.type.dtype)},
            {{"shape", shape}, {"begin", begin}, {"strides", strides}});
  table.add("flip", {x}, {{"axes", axes}});
  table.add("pad", {x},
            {{"paddings", paddings}, {"value", x.type.dtype == DType::kBool ? 1.0 : 7.0}});
  const int64_t axis = draw.below(static_cast<int64_t>(shape.size()));
  Ints sizes;
  for (int64_t left = shape[static_cast<size_t>(axis)]; left > 0; left -= sizes.back()) {
    sizes.push_back(sizes.size() == 7 ? left : std::min(left, draw.extent_or_none(left)));
  }
  if (sizes.empty()) sizes = {0};
  table.add("split", {x}, {{"axis", axis}, {"sizes", sizes}});
  Arrays pieces;
  for (int64_t part : sizes) {
    Shape of = shape;
    of[static_cast<size_t>(axis)] = part;
    pieces.push_back(typed(of, x.type.dtype));
  }
  table.add("concat", pieces, {{"axis", axis}});
  const auto dtype = static_cast<int64_t>(draw.pick({DType::kF32, DType::kI32, DType::kI64}));
  table.add("fill", {}, {{"shape", shape}, {"value", 3.0}, {"dtype", dtype}});
  table.add("arange", {},
            {{"count", draw.extent(60000)}, {"start", -5.0}, {"step", 3.0}, {"dtype", dtype}});
}

}  // namespace ballast::tests
