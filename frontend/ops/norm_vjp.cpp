// The gradients of normalisations. First order is an op of its own. Those of the gradient ops
// follow from their definitions written with other ops, which are traced and differentiated in
// turn.
#include "frontend/ops/ops.h"
#include "frontend/transforms/vjp.h"
#include "frontend/transforms/vjp_rules.h"
#include "frontend/transforms/vmap_rules.h"

#include <functional>
#include <numeric>

namespace ballast {

using namespace vjp_rules;

namespace {

using Tensors = std::vector<Tensor>;
using Definition = std::function<Tensors(const Tensors& inputs)>;

Tensor f32(const Tensor& x) { return ops::cast(x, DType::kF32); }

// The gradients of an op that computes `definition`, in f32 whatever its inputs are.
Tensors differentiate(const VjpArgs& args, const Definition& definition) {
  const size_t count = args.inputs.size();
  Tensors leaves = args.inputs;
  for (const Tensor& cotangent : args.cotangents) {
    if (cotangent.defined()) leaves.push_back(cotangent);
  }
  auto loss = [&](const Tensors& traced) -> Tensors {
    Tensors inputs;
    for (size_t i = 0; i < count; ++i) inputs.push_back(f32(traced[i]));
    const Tensors outputs = definition(inputs);
    Tensor total;
    for (size_t i = 0, next = count; i < outputs.size(); ++i) {
      if (!args.cotangents[i].defined()) continue;
      Tensor part = ops::reduce_sum(outputs[i] * f32(traced[next++]));
      total = total.defined() ? total + part : part;
    }
    return {total};
  };
  std::vector<TensorType> types;
  for (const Tensor& leaf : leaves) types.push_back(leaf.type());
  std::vector<size_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 0);
  Tensors results = eval(reverse(trace(loss, types), numbers, {}), leaves);
  return {results.begin() + 1, results.end()};
}

ops::Axes axes_between(int64_t begin, int64_t end) {
  ops::Axes axes(static_cast<size_t>(end - begin));
  std::iota(axes.begin(), axes.end(), begin);
  return axes;
}

// A sum over no axes is the tensor itself; for the op an empty list means all of them.
Tensor sum_over(const Tensor& x, const ops::Axes& axes, bool keep_dims) {
  return axes.empty() ? x : ops::reduce_sum(x, axes, keep_dims);
}

double extent(const Shape& shape, const ops::Axes& axes) {
  double product = 1;
  for (int64_t axis : axes) product *= static_cast<double>(shape[static_cast<size_t>(axis)]);
  return product;
}

// What flows through the mean and rstd of x over `count` elements each: their derivatives by x are
// 1 / count and -rstd^3 (x - mean) / count. All in f32; `distance` is x - mean.
Tensor statistics_gradient(const Tensor& distance, const Tensor& gmean, const Tensor& rstd,
                           const Tensor& grstd, double count) {
  Tensor dx;
  if (gmean.defined()) dx = ops::broadcast_to(gmean * (1 / count), distance.shape());
  if (grstd.defined()) {
    Tensor part = -(grstd * (rstd * rstd * rstd)) * distance * (1 / count);
    dx = dx.defined() ? dx + part : part;
  }
  return dx;
}

// dx + flows, in the shape and type of x; either may be absent.
Tensor add_flows(const Tensor& dx, const Tensor& flows, const Tensor& x) {
  if (!flows.defined()) return dx;
  Tensor own = ops::cast(ops::reshape(flows, x.shape()), x.dtype());
  return dx.defined() ? dx + own : own;
}

// ---- layers

int64_t begin_axis(const VjpArgs& args, const Tensor& x) {
  const int64_t axis = int_attr(args.attrs, "begin_norm_axis");
  return axis < 0 ? axis + x.rank() : axis;
}

Tensors layer_norm(const VjpArgs& args) {
  const Tensor &value = x(args), &gamma = args.inputs[1];
  const Tensor &mean = args.outputs[1], &rstd = args.outputs[2];
  const int64_t axis = begin_axis(args, value);
  ops::NormGradients result;
  if (g(args).defined()) result = ops::layer_norm_grad(g(args), value, gamma, mean, rstd, axis);
  const double count = extent(value.shape(), axes_between(axis, value.rank()));
  if (args.cotangents[1].defined() || args.cotangents[2].defined()) {
    Tensor flows =
        statistics_gradient(f32(value) - mean, args.cotangents[1], rstd, args.cotangents[2], count);
    result.dx = add_flows(result.dx, flows, value);
  }
  return {result.dx, result.dgamma, result.dbeta};
}

Tensors rms_norm(const VjpArgs& args) {
  const Tensor &value = x(args), &rstd = args.outputs[1];
  const int64_t axis = begin_axis(args, value);
  ops::NormGradients result;
  if (g(args).defined()) {
    result = ops::rms_norm_grad(g(args), value, args.inputs[1], rstd, axis);
  }
  const double count = extent(value.shape(), axes_between(axis, value.rank()));
  if (args.cotangents[1].defined()) {
    Tensor flows = statistics_gradient(f32(value), {}, rstd, args.cotangents[1], count);
    result.dx = add_flows(result.dx, flows, value);
  }
  return {result.dx, result.dgamma};
}

// What all the gradient ops compute, once x is viewed so that statistics and gamma broadcast.
struct Shares {
  ops::Axes moments;     // that the statistics are taken over
  ops::Axes parameters;  // that gamma is shared over
};

Tensors norm_gradients(const Tensor& dy, const Tensor& distance, const Tensor& gamma,
                       const Tensor& rstd, const Shares& shares, bool has_mean) {
  const double count = extent(distance.shape(), shares.moments);
  Tensor normal = distance * rstd, slope = dy * gamma;
  Tensor shared = normal * sum_over(slope * normal, shares.moments, true);
  if (has_mean) shared = shared + sum_over(slope, shares.moments, true);
  return {rstd * (slope - shared * (1 / count)), sum_over(dy * normal, shares.parameters, false),
          sum_over(dy, shares.parameters, false)};
}

// Inputs dy, x, gamma, mean, rstd.
Tensors layer_norm_grad(const VjpArgs& args) {
  const int64_t axis = begin_axis(args, args.inputs[1]);
  return differentiate(args, [axis](const Tensors& in) {
    const Shares shares = {axes_between(axis, in[1].rank()), axes_between(0, axis)};
    return norm_gradients(in[0], in[1] - in[3], in[2], in[4], shares, true);
  });
}

// Inputs dy, x, gamma, rstd.
Tensors rms_norm_grad(const VjpArgs& args) {
  const int64_t axis = begin_axis(args, args.inputs[1]);
  return differentiate(args, [axis](const Tensors& in) {
    const Shares shares = {axes_between(axis, in[1].rank()), axes_between(0, axis)};
    Tensors results = norm_gradients(in[0], in[1], in[2], in[3], shares, false);
    results.resize(2);
    return results;
  });
}

// ---- channels

// [N, C, ...] as [N, groups, C / groups, inner].
Shape grouped_shape(const Shape& shape, int64_t groups) {
  int64_t inner = 1;
  for (size_t d = 2; d < shape.size(); ++d) inner *= shape[d];
  return {shape[0], groups, shape[1] / groups, inner};
}

Tensors group_norm(const VjpArgs& args) {
  const Tensor& value = x(args);
  const int64_t groups = int_attr(args.attrs, "num_groups");
  const Tensor &mean = args.outputs[1], &rstd = args.outputs[2];
  ops::NormGradients result;
  if (g(args).defined()) {
    result = ops::group_norm_grad(g(args), value, args.inputs[1], mean, rstd, groups);
  }
  if (args.cotangents[1].defined() || args.cotangents[2].defined()) {
    const Shape shape = grouped_shape(value.shape(), groups);
    const auto view = [&](const Tensor& statistic) {
      return statistic.defined() ? ops::reshape(statistic, {shape[0], groups, 1, 1}) : Tensor();
    };
    Tensor distance = ops::reshape(f32(value), shape) - view(mean);
    Tensor flows = statistics_gradient(distance, view(args.cotangents[1]), view(rstd),
                                       view(args.cotangents[2]), extent(shape, {2, 3}));
    result.dx = add_flows(result.dx, flows, value);
  }
  return {result.dx, result.dgamma, result.dbeta};
}

// Inputs dy, x, gamma, mean, rstd, viewed as `shape` [N, groups, C / groups, inner].
Tensors channel_gradients(const Tensors& in, const Shape& shape, const Shape& statistic,
                          const ops::Axes& moments) {
  const Tensor dy = ops::reshape(in[0], shape);
  const Tensor distance = ops::reshape(in[1], shape) - ops::reshape(in[3], statistic);
  const Tensor gamma = ops::reshape(in[2], {1, shape[1], shape[2], 1});
  Tensors results =
      norm_gradients(dy, distance, gamma, ops::reshape(in[4], statistic), {moments, {0, 3}}, true);
  for (size_t i = 0; i < 3; ++i) results[i] = ops::reshape(results[i], in[i == 0 ? 1 : 2].shape());
  return results;
}

Tensors group_norm_grad(const VjpArgs& args) {
  const int64_t groups = int_attr(args.attrs, "num_groups");
  return differentiate(args, [groups](const Tensors& in) {
    const Shape shape = grouped_shape(in[1].shape(), groups);
    return channel_gradients(in, shape, {shape[0], groups, 1, 1}, {2, 3});
  });
}

Tensors batch_norm_grad(const VjpArgs& args) {
  return differentiate(args, [](const Tensors& in) {
    const int64_t channels = in[1].shape()[1];
    const Shape shape = grouped_shape(in[1].shape(), channels);
    return channel_gradients(in, shape, {1, channels, 1, 1}, {0, 2, 3});
  });
}

// Inputs x, gamma, beta, running mean and variance; outputs y, the running ones, mean, rstd.
Tensors batch_norm(const VjpArgs& args) {
  const Tensor& value = x(args);
  const double momentum = float_attr(args.attrs, "momentum", 0.1);
  const Tensor &mean = args.outputs[3], &rstd = args.outputs[4];
  const Tensor &moved_mean = args.cotangents[1], &moved_variance = args.cotangents[2];
  ops::NormGradients result;
  if (g(args).defined()) {
    result = ops::batch_norm_grad(g(args), value, args.inputs[1], mean, rstd);
  }
  Tensor gmean = args.cotangents[3];
  if (moved_mean.defined()) {
    gmean = gmean.defined() ? gmean + moved_mean * momentum : moved_mean * momentum;
  }
  if (gmean.defined() || args.cotangents[4].defined() || moved_variance.defined()) {
    const int64_t channels = value.shape()[1];
    const Shape shape = grouped_shape(value.shape(), channels);
    const auto view = [&](const Tensor& statistic) {
      return statistic.defined() ? ops::reshape(statistic, {1, channels, 1, 1}) : Tensor();
    };
    const double count = extent(shape, {0, 3});
    Tensor distance = ops::reshape(f32(value), shape) - view(mean);
    Tensor flows =
        statistics_gradient(distance, view(gmean), view(rstd), view(args.cotangents[4]), count);
    if (moved_variance.defined()) {  // of the unbiased variance
      Tensor part = distance * view(moved_variance) * (2 * momentum / (count - 1));
      flows = flows.defined() ? flows + part : part;
    }
    result.dx = add_flows(result.dx, flows, value);
  }
  const auto kept = [&](const Tensor& cotangent) {
    return cotangent.defined() ? cotangent * (1 - momentum) : Tensor();
  };
  return {result.dx, result.dgamma, result.dbeta, kept(moved_mean), kept(moved_variance)};
}

Tensors batch_norm_inference(const VjpArgs& args) {
  const double epsilon = float_attr(args.attrs, "epsilon", 1e-5);
  return differentiate(args, [epsilon](const Tensors& in) -> Tensors {
    Shape shape(static_cast<size_t>(in[0].rank() - 1), 1);
    shape[0] = in[0].shape()[1];
    const auto view = [&](const Tensor& channels) { return ops::reshape(channels, shape); };
    Tensor rstd = ops::rsqrt(view(in[4]) + epsilon);
    return {(in[0] - view(in[3])) * rstd * view(in[1]) + view(in[2])};
  });
}

}  // namespace

std::vector<Primitive> norm_primitives() {
  return {
      {"batch_norm", batch_norm, nullptr, vmap_rules::channels},
      {"batch_norm_grad", batch_norm_grad, nullptr, vmap_rules::channels},
      {"batch_norm_inference", batch_norm_inference, nullptr, vmap_rules::channels},
      {"group_norm", group_norm, nullptr, vmap_rules::channels},
      {"group_norm_grad", group_norm_grad, nullptr, vmap_rules::channels},
      {"layer_norm", layer_norm, nullptr, vmap_rules::layer_norm},
      {"layer_norm_grad", layer_norm_grad, nullptr, vmap_rules::layer_norm_grad},
      {"rms_norm", rms_norm, nullptr, vmap_rules::rms_norm},
      {"rms_norm_grad", rms_norm_grad, nullptr, vmap_rules::rms_norm_grad},
  };
}

}  // namespace ballast
