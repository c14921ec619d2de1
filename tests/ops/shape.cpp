#include "tests/op_table.h"
#include "tests/samples.h"

#include <algorithm>
#include <cmath>

namespace ballast::tests {

void add_region(OpFamilies& table);  // region.cpp

namespace {

void broadcast_to(const std::vector<HostArray>& inputs, const Attrs&,
                  std::vector<HostArray>& outputs) {
  for (size_t i = 0; i < outputs[0].values.size(); ++i) {
    outputs[0].values[i] = broadcast_value(inputs[0], index_of(i, outputs[0].type.shape));
  }
}

void copy_values(const std::vector<HostArray>& inputs, const Attrs&,
                 std::vector<HostArray>& outputs) {
  outputs[0].values = inputs[0].values;
}

void transpose(const std::vector<HostArray>& inputs, const Attrs& attrs,
               std::vector<HostArray>& outputs) {
  const std::vector<int64_t>& perm = ints_attr(attrs, "perm");
  for (size_t i = 0; i < outputs[0].values.size(); ++i) {
    Index target = index_of(i, outputs[0].type.shape);
    Index source(perm.size());
    for (size_t axis = 0; axis < perm.size(); ++axis) {
      source[static_cast<size_t>(perm[axis])] = target[axis];
    }
    outputs[0].values[i] = inputs[0].values[flat_of(source, inputs[0].type.shape)];
  }
}

Types reshaped(const Types& in, const Attrs& attrs) {
  Types result = of_shape("shape")(in, attrs);
  for (int64_t& extent : result[0].shape) {
    if (extent != -1) continue;
    extent = 1;
    extent = in[0].elements() / result[0].elements();
  }
  return result;
}

Types transposed(const Types& in, const Attrs& attrs) {
  Types result = {{in[0].dtype, {}}};
  for (int64_t axis : ints_attr(attrs, "perm")) {
    result[0].shape.push_back(in[0].shape[static_cast<size_t>(axis)]);
  }
  return result;
}

void add_shape_ops(OpFamilies& table) {
  auto dtype = [](DType type) { return Attrs{{"dtype", static_cast<int64_t>(type)}}; };
  table.add("cast", {real({3, 7}, -5, 5)}, dtype(DType::kI32));
  table.add("cast", {real({3, 7}, 0, 5)}, dtype(DType::kU8));
  table.add("cast", {whole({9}, 3)}, dtype(DType::kF32));
  table.add("cast", {whole({9}, 3)}, dtype(DType::kBool));
  table.add("cast", {boolean({9})}, dtype(DType::kF32));
  table.add("cast", {boolean({9})}, dtype(DType::kI32));
  auto shape = [](Shape to) { return Attrs{{"shape", std::move(to)}}; };
  table.add("broadcast_to", {real({}, -2, 2)}, shape({3, 4}), true);
  table.add("broadcast_to", {real({4, 1}, -2, 2)}, shape({2, 4, 3}), true);
  table.add("broadcast_to", {real({5}, -2, 2)}, shape({0, 5}));
  table.add("broadcast_to", {whole({3}, 9)}, shape({2, 3}));
  table.add("reshape", {real({3, 4}, -2, 2)}, shape({2, 6}), true);
  table.add("reshape", {real({1}, -2, 2)}, shape({}), true);
  table.add("reshape", {real({3, 10}, -2, 2)}, shape({2, -1, 3}), true);
  table.add("reshape", {real({0, 3}, -2, 2)}, shape({3, 0, 2}));
  table.add("barrier", {real({3, 4}, -2, 2)}, {}, true);
  table.add("barrier", {real({3, 4}, -2, 2), real({2}, -2, 2)}, {}, true);
  auto perm = [](std::vector<int64_t> order) { return Attrs{{"perm", std::move(order)}}; };
  table.add("transpose", {real({3, 5}, -2, 2)}, perm({1, 0}), true);
  table.add("transpose", {real({2, 3, 5}, -2, 2)}, perm({1, 2, 0}), true);
  table.add("transpose", {real({33, 65}, -2, 2)}, perm({1, 0}));
  table.add("transpose", {real({2, 3, 4, 5}, -2, 2)}, perm({0, 2, 1, 3}));
  table.add("transpose", {real({}, -2, 2)}, perm({}), true);
  table.add("transpose", {whole({3, 5}, 9)}, perm({1, 0}));
}
}  // namespace

void add_shape(OpFamilies& table) {
  table.references.insert({
      {"barrier", copy_values},
      {"broadcast_to", broadcast_to},
      {"reshape", copy_values},
      {"transpose", transpose},
  });
  table.types.insert({
      {"barrier", like({0})},
      {"broadcast_to", of_shape("shape")},
      {"reshape", reshaped},
      {"transpose", transposed},
  });
  add_shape_ops(table);
}

void draw_shape(OpFamilies& table, Draw& draw) {
  const HostArray x = typed(draw.shape(draw.below(6), 60000), draw.element());
  const Shape& shape = x.type.shape;
  const auto rank = static_cast<int64_t>(shape.size());
  std::vector<int64_t> perm;
  for (int64_t axis = 0; axis < rank; ++axis) {
    perm.insert(perm.begin() + draw.below(axis + 1), axis);
  }
  table.add("transpose", {x}, {{"perm", perm}});
  HostArray part = typed(draw.broadcast_from(shape), draw.element());
  table.add("broadcast_to", {part}, {{"shape", shape}});
  Shape turned;
  for (int64_t axis : perm) turned.push_back(shape[static_cast<size_t>(axis)]);
  table.add("reshape", {x}, {{"shape", turned}});
  table.add("barrier", {x, part});
}

}  // namespace ballast::tests
