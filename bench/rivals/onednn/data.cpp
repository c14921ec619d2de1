// Reductions, moves and sums.
#include "bench/rivals/onednn/onednn.h"

namespace ballast::bench::onednn {
namespace {

using dnnl::algorithm;

std::vector<Variant> reduction(const Case& c, algorithm kind) {
  const Dims shape = c.inputs[0].shape;
  const auto axes = ints_of(c, "axes");
  Dims kept = shape;
  for (size_t axis = 0; axis < shape.size() && axes.empty(); ++axis) kept[axis] = 1;
  for (int64_t axis : axes) kept[axis < 0 ? axis + shape.size() : axis] = 1;
  const Desc from = plain(shape), to = plain(kept);
  const dnnl::reduction::primitive_desc pd(engine(), kind, from, to, 0.0f, 0.0f, attributes());
  const Memory y = empty(to);
  return {variant(
      "", {action<dnnl::reduction>(pd, {{DNNL_ARG_SRC, input(c, 0)}, {DNNL_ARG_DST, y}})}, {y})};
}

// The result's extents over the input's memory, reordered to plain.
std::vector<Variant> transpose(const Case& c) {
  const Dims shape = c.inputs[0].shape, dense = dense_strides(shape);
  Dims dims, strides;
  for (int64_t axis : ints_of(c, "perm")) {
    dims.push_back(shape[axis]);
    strides.push_back(dense[axis]);
  }
  const Memory y = empty(plain(dims));
  return {variant("", {reorder(input(c, 0, strided(dims, strides)), y)}, {y})};
}

std::vector<Variant> concat(const Case& c) {
  std::vector<Desc> descs;
  for (const Operand& operand : c.inputs) descs.push_back(plain(operand.shape));
  int64_t axis = int_of(c, "axis");
  if (axis < 0) axis += static_cast<int64_t>(c.inputs[0].shape.size());
  Dims dims = c.inputs[0].shape;
  dims[axis] = 0;
  for (const Operand& operand : c.inputs) dims[axis] += operand.shape[axis];
  const dnnl::concat::primitive_desc pd(engine(), plain(dims), static_cast<int>(axis), descs,
                                        attributes());
  const Memory y = empty(plain(dims));
  std::unordered_map<int, Memory> arguments = {{DNNL_ARG_DST, y}};
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    arguments[DNNL_ARG_MULTIPLE_SRC + static_cast<int>(i)] = input(c, i);
  }
  return {variant("", {action<dnnl::concat>(pd, arguments)}, {y})};
}

// to = scale_a * a + scale_b * b
Action sum(float scale_a, const Memory& a, float scale_b, const Memory& b, const Memory& to) {
  const dnnl::sum::primitive_desc pd(engine(), to.get_desc(), {scale_a, scale_b},
                                     {a.get_desc(), b.get_desc()}, attributes());
  return action<dnnl::sum>(
      pd, {{DNNL_ARG_MULTIPLE_SRC, a}, {DNNL_ARG_MULTIPLE_SRC + 1, b}, {DNNL_ARG_DST, to}});
}

float scalar(const Case& c, size_t number) { return values_of(c.inputs[number], number)[0]; }

std::vector<Variant> sgd(const Case& c) {
  const Memory param = empty(plain(c.inputs[0].shape));
  return {variant("", {sum(1.0f, input(c, 0), -scalar(c, 2), input(c, 1), param)}, {param})};
}

std::vector<Variant> momentum(const Case& c) {
  const Memory param = empty(plain(c.inputs[0].shape)), accum = empty(plain(c.inputs[0].shape));
  return {variant("",
                  {sum(scalar(c, 4), input(c, 1), 1.0f, input(c, 2), accum),
                   sum(1.0f, input(c, 0), -scalar(c, 3), accum, param)},
                  {param, accum})};
}

}  // namespace

void add_data(Makers& makers) {
  const std::map<std::string, algorithm> reductions = {{"reduce_sum", algorithm::reduction_sum},
                                                       {"reduce_mean", algorithm::reduction_mean},
                                                       {"reduce_max", algorithm::reduction_max},
                                                       {"reduce_min", algorithm::reduction_min}};
  for (const auto& [name, kind] : reductions) {
    makers[name] = [kind = kind](const Case& c) { return reduction(c, kind); };
  }
  makers["transpose"] = transpose;
  makers["concat"] = concat;
  makers["apply_gradient_descent"] = sgd;
  makers["apply_momentum"] = momentum;
}

}  // namespace ballast::bench::onednn
