// The gradients of reduce ops. Names: g is the output's cotangent, y the output, x the first input.
#include "frontend/ops/in_f32.h"
#include "frontend/ops/ops.h"
#include "frontend/transforms/jvp_rules.h"
#include "frontend/transforms/vjp_rules.h"
#include "frontend/transforms/vmap_rules.h"

namespace ballast {

using namespace vjp_rules;

namespace {

// The shape of a reduction's result had it kept its dimensions.
Shape kept_shape(const VjpArgs& args) {
  Shape shape = x(args).shape();
  const std::vector<int64_t>& axes = ints_attr(args.attrs, "axes");
  if (axes.empty()) return Shape(shape.size(), 1);
  for (int64_t axis : axes) shape[static_cast<size_t>(axis)] = 1;
  return shape;
}

// A reduction's result or cotangent, repeated over the input's shape.
Tensor spread(const VjpArgs& args, const Tensor& reduced) {
  return ops::broadcast_to(ops::reshape(reduced, kept_shape(args)), x(args).shape());
}

std::vector<Tensor> reduce_sum(const VjpArgs& args) { return {spread(args, g(args))}; }

std::vector<Tensor> reduce_mean(const VjpArgs& args) {
  double count = static_cast<double>(x(args).elements()) /
                 static_cast<double>(std::max<int64_t>(1, args.outputs[0].elements()));
  // 1 / count and count may both lie outside of f16.
  const auto share = [&](const Tensor& wide) { return wide * (1.0 / count); };
  return {spread(args, ops::in_f32(g(args), share))};
}

// Elements that share the extremum share its gradient equally.
std::vector<Tensor> reduce_extremum(const VjpArgs& args) {
  Tensor is_extremum =
      ops::cast(ops::equal(x(args), spread(args, args.outputs[0])), x(args).dtype());
  Tensor count = ops::reduce_sum(is_extremum, ints_attr(args.attrs, "axes"),
                                 int_attr(args.attrs, "keep_dims") != 0);
  return {is_extremum * spread(args, g(args) / count)};
}

// y / x, except that a single zero gets the product of the others, and two zeros nothing. (A second
// derivative is exact where no factor is zero.)
std::vector<Tensor> reduce_prod(const VjpArgs& args) {
  const std::vector<int64_t>& axes = ints_attr(args.attrs, "axes");
  bool keep_dims = int_attr(args.attrs, "keep_dims") != 0;
  Tensor is_zero = ops::equal(x(args), 0.0f);
  Tensor zeros = ops::reduce_sum(ops::cast(is_zero, x(args).dtype()), axes, keep_dims);
  Tensor nonzero = ops::select(is_zero, 1.0f, x(args));
  Tensor product = ops::reduce_prod(nonzero, axes, keep_dims);
  Tensor others = ops::select(
      is_zero, ops::select(ops::equal(spread(args, zeros), 1.0f), spread(args, product), 0.0f),
      ops::select(ops::equal(spread(args, zeros), 0.0f), spread(args, product) / nonzero, 0.0f));
  return {spread(args, g(args)) * others};
}

// An element counts for every sum behind it.
std::vector<Tensor> cumsum(const VjpArgs& args) {
  return {ops::cumsum(g(args), int_attr(args.attrs, "axis"), int_attr(args.attrs, "exclusive") != 0,
                      int_attr(args.attrs, "reverse") == 0)};
}

}  // namespace

std::vector<Primitive> reduce_primitives() {
  return {
      {"argmax", zero, nullptr, vmap_rules::along},
      {"argmin", vjp_rules::zero, nullptr, vmap_rules::along},
      {"cumsum", cumsum, jvp_rules::multilinear, vmap_rules::along},
      {"reduce_all", zero, nullptr, vmap_rules::reduce},
      {"reduce_any", vjp_rules::zero, nullptr, vmap_rules::reduce},
      {"reduce_max", reduce_extremum, nullptr, vmap_rules::reduce},
      {"reduce_mean", reduce_mean, jvp_rules::multilinear, vmap_rules::reduce},
      {"reduce_min", reduce_extremum, nullptr, vmap_rules::reduce},
      {"reduce_prod", reduce_prod, nullptr, vmap_rules::reduce},
      {"reduce_sum", reduce_sum, jvp_rules::multilinear, vmap_rules::reduce},
  };
}

}  // namespace ballast
