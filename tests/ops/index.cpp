#include "tests/op_table.h"
#include "tests/samples.h"

namespace ballast::tests {

namespace {

using Arrays = std::vector<HostArray>;

// For every element of `places` (what gather of `table` gives) the element of the table that its
// index picks: f(place, element); nothing where the index lies outside.
template <class F>
void for_each_pick(const Shape& table, const HostArray& indices, const Shape& places, size_t axis,
                   bool is_per_element, const F& f) {
  const auto count = static_cast<size_t>(TensorType{DType::kF32, places}.elements());
  const size_t picks = is_per_element ? 1 : indices.type.shape.size();
  Index place(places.size()), at, element;
  for (size_t i = 0; i < count; ++i, advance(place, places)) {
    const auto first = place.begin() + static_cast<int64_t>(axis);
    const auto rest = first + static_cast<int64_t>(picks);
    if (is_per_element) {
      at = place;
    } else {
      at.assign(first, rest);
    }
    double row = indices.values[flat_of(at, indices.type.shape)];
    const auto rows = static_cast<double>(table[axis]);
    if (row < 0) row += rows;
    if (!(row >= 0 && row < rows)) continue;
    element.assign(place.begin(), first);
    element.push_back(static_cast<int64_t>(row));
    element.insert(element.end(), rest, place.end());
    f(i, flat_of(element, table));
  }
}

size_t axis_of(const Attrs& attrs) { return static_cast<size_t>(int_attr(attrs, "axis")); }

ReferenceOp gather(bool is_per_element) {
  return [=](const Arrays& inputs, const Attrs& attrs, Arrays& outputs) {
    std::fill(outputs[0].values.begin(), outputs[0].values.end(), 0);
    for_each_pick(inputs[0].type.shape, inputs[1], outputs[0].type.shape, axis_of(attrs),
                  is_per_element, [&](size_t place, size_t element) {
                    outputs[0].values[place] = inputs[0].values[element];
                  });
  };
}

ReferenceOp gather_grad(bool is_per_element) {
  return [=](const Arrays& inputs, const Attrs& attrs, Arrays& outputs) {
    std::fill(outputs[0].values.begin(), outputs[0].values.end(), 0);
    for_each_pick(outputs[0].type.shape, inputs[0], inputs[1].type.shape, axis_of(attrs),
                  is_per_element, [&](size_t place, size_t element) {
                    outputs[0].values[element] += inputs[1].values[place];
                  });
  };
}

ReferenceOp scatter_add(bool is_per_element) {
  return [=](const Arrays& inputs, const Attrs& attrs, Arrays& outputs) {
    outputs[0].values = inputs[0].values;
    for_each_pick(outputs[0].type.shape, inputs[1], inputs[2].type.shape, axis_of(attrs),
                  is_per_element, [&](size_t place, size_t element) {
                    outputs[0].values[element] += inputs[2].values[place];
                  });
  };
}

void one_hot(const Arrays& inputs, const Attrs& attrs, Arrays& outputs) {
  double on = 1, off = 0;
  for (const auto& [name, value] : attrs) {
    if (name == "on") on = std::get<double>(value);
    if (name == "off") off = std::get<double>(value);
  }
  const size_t axis = axis_of(attrs);
  for (size_t i = 0; i < outputs[0].values.size(); ++i) {
    Index at = index_of(i, outputs[0].type.shape);
    const auto row = static_cast<double>(at[axis]);
    at.erase(at.begin() + static_cast<int64_t>(axis));
    const bool is_hot = inputs[0].values[flat_of(at, inputs[0].type.shape)] == row;
    outputs[0].values[i] = is_hot ? on : off;
  }
}

Types gathered(const Types& in, const Attrs& attrs) {
  Types result = {in[0]};
  const auto at = result[0].shape.begin() + int_attr(attrs, "axis");
  result[0].shape.insert(result[0].shape.erase(at), in[1].shape.begin(), in[1].shape.end());
  return result;
}

Types one_hots(const Types& in, const Attrs& attrs) {
  Types result = {{dtype_attr(attrs), in[0].shape}};
  const auto at = result[0].shape.begin() + int_attr(attrs, "axis");
  result[0].shape.insert(at, int_attr(attrs, "depth"));
  return result;
}

// Indices into `extent` rows, some from the end and, if wanted, some outside.
HostArray numbers(const Shape& shape, int64_t extent, bool has_outside = false,
                  DType dtype = DType::kI32) {
  const int64_t beyond = has_outside ? 2 : 0;
  HostArray array = whole(shape, 2 * (extent + beyond), dtype);
  for (double& value : array.values) value -= static_cast<double>(extent + beyond);
  if (has_outside && dtype == DType::kI64 && !array.values.empty()) array.values[0] = 0x1p32;
  return array;
}

void add_gathers(OpFamilies& table) {
  const auto axis = [](int64_t at) { return Attrs{{"axis", at}}; };
  table.add("gather", {real({5, 3}, -2, 2), numbers({4}, 5)}, axis(0), true);
  table.add("gather", {real({2, 3, 4}, -2, 2), numbers({2, 2}, 3)}, axis(1), true);
  table.add("gather", {real({3, 4}, -2, 2), numbers({}, 4)}, axis(1), true);
  table.add("gather", {real({7}, -2, 2), numbers({3}, 7, true)}, axis(0), true);
  table.add("gather", {real({10, 64}, -2, 2), numbers({9, 3}, 10, true)}, axis(0));
  table.add("gather", {real({10, 33}, -2, 2), numbers({50}, 10, true, DType::kI64)}, axis(0));
  table.add("gather", {real({3, 50}, -2, 2), numbers({130}, 50)}, axis(1));
  table.add("gather", {real({3, 0}, -2, 2), numbers({2}, 4)}, axis(1));
  table.add("gather", {real({0, 3}, -2, 2), numbers({0}, 4)}, axis(0));
  table.add("gather", {whole({9, 5}, 99, DType::kI64), numbers({7}, 9)}, axis(0));
  table.add("gather", {whole({9, 34}, 99, DType::kU8), numbers({7}, 9)}, axis(0));
  table.add("gather", {boolean({4, 17}), numbers({7}, 4)}, axis(0));
  table.add("gather_elements", {real({3, 4}, -2, 2), numbers({3, 2}, 4)}, axis(1), true);
  table.add("gather_elements", {real({4, 3}, -2, 2), numbers({5, 3}, 4)}, axis(0), true);
  table.add("gather_elements", {real({6}, -2, 2), numbers({3}, 6, true)}, axis(0), true);
  table.add("gather_elements", {real({5, 40}, -2, 2), numbers({5, 1}, 40, true, DType::kI64)},
            axis(1));
  table.add("gather_elements", {real({2, 9, 20}, -2, 2), numbers({2, 70, 20}, 9, true)}, axis(1));
  table.add("gather_elements", {whole({3, 7}, 9, DType::kU8), numbers({3, 8}, 7)}, axis(1));
}

void add_sums(OpFamilies& table) {
  const auto into = [](Shape shape, int64_t at) { return Attrs{{"shape", shape}, {"axis", at}}; };
  const Attrs axis_0 = {{"axis", int64_t{0}}};
  table.add("gather_grad", {numbers({4}, 5), real({4, 3}, -2, 2)}, into({5, 3}, 0), true);
  table.add("gather_grad", {numbers({2, 2}, 3), real({2, 2, 2, 4}, -2, 2)}, into({2, 3, 4}, 1),
            true);
  table.add("gather_grad", {numbers({50}, 10, true), real({50, 37}, -2, 2)}, into({10, 37}, 0));
  table.add("gather_grad", {numbers({300}, 1000), real({300, 64}, -2, 2)}, into({1000, 64}, 0));
  table
      .add("gather_grad", {numbers({9000}, 7, true, DType::kI64), real({9000, 5}, -2, 2)},
           into({7, 5}, 0))
      .atol = 2e-4;
  table.add("gather_grad", {numbers({0}, 3), real({0, 2}, -2, 2)}, into({3, 2}, 0));
  for (DType dtype : {DType::kI32, DType::kU8}) {
    table.add("gather_grad", {numbers({40}, 6), whole({40, 20}, 6, dtype)}, into({6, 20}, 0));
    table.add("gather_elements_grad", {numbers({5, 7}, 3, true), whole({5, 7}, 9, dtype)},
              into({5, 3}, 1));
    table.add("scatter_add", {whole({4, 3}, 9, dtype), numbers({2, 3}, 4), whole({2, 3}, 9, dtype)},
              axis_0);
  }
  table.add("gather_elements_grad", {numbers({3, 2}, 4), real({3, 2}, -2, 2)}, into({3, 4}, 1),
            true);
  table.add("gather_elements_grad", {numbers({7}, 3, true), real({7}, -2, 2)}, into({3}, 0), true);
  table.add("gather_elements_grad", {numbers({5, 30, 20}, 9, true), real({5, 30, 20}, -2, 2)},
            into({5, 9, 20}, 1));
  const auto axis = [](int64_t at) { return Attrs{{"axis", at}}; };
  table.add("index_add", {real({5, 3}, -2, 2), numbers({4}, 5), real({4, 3}, -2, 2)}, axis(0),
            true);
  table.add("index_add", {real({3, 40}, -2, 2), numbers({70}, 40, true), real({3, 70}, -2, 2)},
            axis(1));
  for (DType dtype : {DType::kI32, DType::kI64, DType::kU8}) {
    table.add("index_add", {whole({6, 33}, 9, dtype), numbers({20}, 6), whole({20, 33}, 9, dtype)},
              axis(0));
  }
  table.add("scatter_add", {real({3, 4}, -2, 2), numbers({3, 2}, 4), real({3, 2}, -2, 2)}, axis(1),
            true);
  table.add("scatter_add",
            {real({30, 9}, -2, 2), numbers({60, 9}, 30, true, DType::kI64), real({60, 9}, -2, 2)},
            axis(0));
}

void add_one_hots(OpFamilies& table) {
  const auto attrs = [](int64_t depth, int64_t axis, double on, double off, DType dtype) {
    return Attrs{{"depth", depth},
                 {"axis", axis},
                 {"on", on},
                 {"off", off},
                 {"dtype", static_cast<int64_t>(dtype)}};
  };
  table.add("one_hot", {numbers({5}, 4, true)}, attrs(4, 1, 1, 0, DType::kF32));
  table.add("one_hot", {numbers({}, 3)}, attrs(3, 0, 2.5, -1, DType::kF32));
  table.add("one_hot", {numbers({2, 3}, 5)}, attrs(5, 1, 0.9f, 0.01f, DType::kF32));
  table.add("one_hot", {numbers({2, 3}, 5)}, attrs(5, 0, 7, 8, DType::kI32));
  table.add("one_hot", {numbers({70}, 100, true, DType::kI64)}, attrs(100, 1, 1, 0, DType::kF32));
  table.add("one_hot", {whole({3}, 20)}, attrs(20, 1, 1, 0, DType::kBool));
  table.add("one_hot", {whole({3}, 20)}, attrs(20, 1, -1, 1e12, DType::kI64));
  table.add("one_hot", {whole({3}, 20)}, attrs(0, 1, 1, 0, DType::kF32));
  table.add("one_hot", {whole({0}, 20)}, attrs(4, 0, 1, 0, DType::kU8));
}

}  // namespace

void add_index(OpFamilies& table) {
  table.references.insert({
      {"gather", gather(false)},
      {"gather_elements", gather(true)},
      {"gather_elements_grad", gather_grad(true)},
      {"gather_grad", gather_grad(false)},
      {"index_add", scatter_add(false)},
      {"one_hot", one_hot},
      {"scatter_add", scatter_add(true)},
  });
  table.types.insert({
      {"gather", gathered},
      {"gather_elements",
       [](const Types& in, const Attrs&) {
         return Types{{in[0].dtype, in[1].shape}};
       }},
      {"gather_elements_grad", of_shape("shape", 1)},
      {"gather_grad", of_shape("shape", 1)},
      {"index_add", like({0})},
      {"one_hot", one_hots},
      {"scatter_add", like({0})},
  });
  add_gathers(table);
  add_sums(table);
  add_one_hots(table);
}

void draw_index(OpFamilies& table, Draw& draw) {
  const HostArray x = typed(draw.shape(1 + draw.below(3), 30000), draw.element());
  const Shape& shape = x.type.shape;
  const auto axis = draw.below(static_cast<int64_t>(shape.size()));
  const auto at = static_cast<size_t>(axis);
  const DType dtype = draw.pick({DType::kI32, DType::kI32, DType::kI64});
  const bool has_outside = draw.one_in(2);
  const Attrs along = {{"axis", axis}};
  const auto sums = [&](OpCase& added) { added.rtol = 1e-4, added.atol = 1e-3; };
  if (shape[at] > 0) {
    const Shape places = draw.one_in(5) ? Shape{} : draw.shape(1 + draw.below(2), 300);
    const HostArray rows = numbers(places, shape[at], has_outside, dtype);
    Shape picked(shape.begin(), shape.begin() + axis);
    picked.insert(picked.end(), places.begin(), places.end());
    picked.insert(picked.end(), shape.begin() + axis + 1, shape.end());
    const HostArray dy = typed(picked, x.type.dtype);
    table.add("gather", {x, rows}, along);
    if (dy.type.dtype == DType::kBool || dy.type.dtype == DType::kU8) return;  // sums overflow
    const Attrs into = {{"shape", shape}, {"axis", axis}};
    sums(table.add("gather_grad", {rows, dy}, into));
    if (places.size() == 1) sums(table.add("index_add", {x, rows, dy}, along));
    Shape each = shape;
    each[at] = draw.extent_or_none(200);
    const HostArray elements = numbers(each, shape[at], has_outside, dtype);
    const HostArray dz = typed(each, x.type.dtype);
    table.add("gather_elements", {x, elements}, along);
    sums(table.add("gather_elements_grad", {elements, dz}, into));
    sums(table.add("scatter_add", {x, elements, dz}, along));
  }
  const int64_t depth = draw.extent_or_none(300);
  const Shape hot = draw.shape(draw.below(3), 300);
  table.add("one_hot", {numbers(hot, depth, has_outside, dtype)},
            {{"depth", depth},
             {"axis", draw.below(static_cast<int64_t>(hot.size()) + 1)},
             {"on", 2.0},
             {"off", 1.0},
             {"dtype", static_cast<int64_t>(draw.pick({DType::kF32, DType::kI32, DType::kU8}))}});
}

}  // namespace ballast::tests
