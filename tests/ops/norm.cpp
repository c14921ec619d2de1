#include "tests/op_table.h"
#include "tests/samples.h"

#include <algorithm>
#include <cmath>

namespace ballast::tests {

namespace {

// How elements share moments and parameters: for every element the number of both.
struct Sharing {
  std::vector<size_t> moment, parameter;
  size_t moments = 0;
  double each = 0;  // elements by moment
};

Sharing sharing(const Shape& shape, const std::function<size_t(const Index&)>& moment,
                const std::function<size_t(const Index&)>& parameter) {
  Sharing result;
  const auto n = static_cast<size_t>(TensorType{DType::kF32, shape}.elements());
  for (size_t i = 0; i < n; ++i) {
    Index index = index_of(i, shape);
    result.moment.push_back(moment(index));
    result.parameter.push_back(parameter(index));
    result.moments = std::max(result.moments, result.moment.back() + 1);
  }
  result.each = static_cast<double>(n) / static_cast<double>(std::max<size_t>(1, result.moments));
  return result;
}

Sharing share(const std::string& kind, const Shape& shape, const Attrs& attrs) {
  if (kind == "batch") {
    auto channel = [](const Index& index) { return static_cast<size_t>(index[1]); };
    return sharing(shape, channel, channel);
  }
  if (kind == "group") {
    const int64_t groups = int_attr(attrs, "num_groups"), each = shape[1] / groups;
    return sharing(
        shape,
        [=](const Index& index) {
          return static_cast<size_t>(index[0] * groups + index[1] / each);
        },
        [](const Index& index) { return static_cast<size_t>(index[1]); });
  }
  int64_t axis = int_attr(attrs, "begin_norm_axis");
  if (axis < 0) axis += static_cast<int64_t>(shape.size());
  const Shape lead(shape.begin(), shape.begin() + axis), rest(shape.begin() + axis, shape.end());
  return sharing(
      shape,
      [=](const Index& index) {
        return flat_of({index.begin(), index.begin() + axis}, lead);
      },
      [=](const Index& index) {
        return flat_of({index.begin() + axis, index.end()}, rest);
      });
}

struct Moments {
  Elements mean, variance;
};

Moments moments_of(const Elements& x, const Sharing& s, bool has_mean) {
  Moments result{Elements(s.moments), Elements(s.moments)};
  for (size_t i = 0; i < x.size() && has_mean; ++i) result.mean[s.moment[i]] += x[i] / s.each;
  for (size_t i = 0; i < x.size(); ++i) {
    result.variance[s.moment[i]] += std::pow(x[i] - result.mean[s.moment[i]], 2) / s.each;
  }
  return result;
}

// y, and the moments that follow it among the outputs.
ReferenceOp norm(const std::string& kind, double default_epsilon) {
  return [=](const std::vector<HostArray>& in, const Attrs& attrs, std::vector<HostArray>& out) {
    const bool is_rms = kind == "rms", is_batch = kind == "batch";
    const Elements& x = in[0].values;
    const Sharing s = share(kind, in[0].type.shape, attrs);
    const Moments m = moments_of(x, s, !is_rms);
    Elements rstd;
    for (double variance : m.variance) {
      rstd.push_back(1 / std::sqrt(variance + float_attr(attrs, "epsilon", default_epsilon)));
    }
    for (size_t i = 0; i < x.size(); ++i) {
      const size_t k = s.moment[i], p = s.parameter[i];
      out[0].values[i] =
          (x[i] - m.mean[k]) * rstd[k] * in[1].values[p] + (is_rms ? 0 : in[2].values[p]);
    }
    out.back().values = rstd;
    if (!is_rms) out[out.size() - 2].values = m.mean;
    if (!is_batch) return;
    const double momentum = float_attr(attrs, "momentum", 0.1);
    for (size_t k = 0; k < s.moments; ++k) {
      const double unbiased = m.variance[k] * s.each / (s.each - 1);
      out[1].values[k] = (1 - momentum) * in[3].values[k] + momentum * m.mean[k];
      out[2].values[k] = (1 - momentum) * in[4].values[k] + momentum * unbiased;
    }
  };
}

// Inputs dy, x, gamma, mean (not rms), rstd, each an input of its own right.
ReferenceOp norm_grad(const std::string& kind) {
  return [=](const std::vector<HostArray>& in, const Attrs& attrs, std::vector<HostArray>& out) {
    const bool is_rms = kind == "rms";
    const Sharing s = share(kind, in[1].type.shape, attrs);
    const Elements &dy = in[0].values, &x = in[1].values, &gamma = in[2].values;
    const Elements& rstd = in.back().values;
    Elements slopes(s.moments), products(s.moments);
    auto normal = [&](size_t i) {
      return (x[i] - (is_rms ? 0 : in[3].values[s.moment[i]])) * rstd[s.moment[i]];
    };
    for (size_t o = 1; o < out.size(); ++o) {
      std::fill(out[o].values.begin(), out[o].values.end(), 0);
    }
    for (size_t i = 0; i < x.size(); ++i) {
      const size_t k = s.moment[i], p = s.parameter[i];
      if (!is_rms) slopes[k] += dy[i] * gamma[p];
      products[k] += dy[i] * gamma[p] * normal(i);
      out[1].values[p] += dy[i] * normal(i);
      if (!is_rms) out[2].values[p] += dy[i];
    }
    for (size_t i = 0; i < x.size(); ++i) {
      const size_t k = s.moment[i];
      const double shared = (slopes[k] + normal(i) * products[k]) / s.each;
      out[0].values[i] = rstd[k] * (dy[i] * gamma[s.parameter[i]] - shared);
    }
  };
}

void inference(const std::vector<HostArray>& in, const Attrs& attrs, std::vector<HostArray>& out) {
  const Shape& shape = in[0].type.shape;
  for (size_t i = 0; i < in[0].values.size(); ++i) {
    const auto c = static_cast<size_t>(index_of(i, shape)[1]);
    out[0].values[i] = (in[0].values[i] - in[3].values[c]) /
                           std::sqrt(in[4].values[c] + float_attr(attrs, "epsilon", 1e-5)) *
                           in[1].values[c] +
                       in[2].values[c];
  }
}

// Statistics are f32 whatever x is.
Types layer_types(const Types& in, const Attrs& attrs) {
  int64_t axis = int_attr(attrs, "begin_norm_axis");
  if (axis < 0) axis += static_cast<int64_t>(in[0].shape.size());
  TensorType statistic{DType::kF32, in[0].shape};
  std::fill(statistic.shape.begin() + axis, statistic.shape.end(), 1);
  return {in[0], statistic, statistic};
}

// Sums over all elements are longer the more there are.
void tolerate(OpCase& added) {
  added.rtol = 2e-5;
  added.atol = 2e-5 + 1e-8 * static_cast<double>(added.inputs[0].type.elements());
}

bool is_small(const Shape& shape) {
  return TensorType{DType::kF32, shape}.elements() > 0 &&
         TensorType{DType::kF32, shape}.elements() < 40;
}

void add_layer(OpFamilies& table, const Shape& shape, int64_t begin_axis) {
  const size_t axis = begin_axis < 0 ? shape.size() - 1 : static_cast<size_t>(begin_axis);
  const Shape parameter(shape.begin() + static_cast<std::ptrdiff_t>(axis), shape.end());
  Shape statistic = shape;
  std::fill(statistic.begin() + static_cast<std::ptrdiff_t>(axis), statistic.end(), 1);
  const Attrs axis_attr = {{"begin_norm_axis", begin_axis}};
  Attrs attrs = axis_attr;
  attrs.push_back({"epsilon", 1e-3});
  const bool smooth = is_small(shape);
  const HostArray gamma = real(parameter, 0.5, 1.5), beta = real(parameter, -1, 1);
  tolerate(table.add("layer_norm", {real(shape, -2, 3), gamma, beta}, attrs, smooth));
  tolerate(table.add("rms_norm", {real(shape, -2, 3), gamma}, attrs, smooth));
  const HostArray dy = real(shape, -1, 1), x = real(shape, -2, 3);
  const HostArray mean = real(statistic, -0.5, 0.5), rstd = real(statistic, 0.5, 1.5);
  tolerate(table.add("layer_norm_grad", {dy, x, gamma, mean, rstd}, axis_attr, smooth));
  tolerate(table.add("rms_norm_grad", {dy, x, gamma, rstd}, axis_attr, smooth));
}

void add_layers(OpFamilies& table) {
  struct Call {
    Shape shape;
    int64_t axis;
  };
  for (const Call& call : std::vector<Call>{{{3, 4}, -1},
                                            {{2, 3, 2}, 1},
                                            {{6}, 0},
                                            {{2, 18}, 1},
                                            {{5, 33}, -1},
                                            {{33, 7}, 1},
                                            {{3, 4, 16}, 2},
                                            {{2, 3, 40}, 1},
                                            {{0, 4}, 1}}) {
    add_layer(table, call.shape, call.axis);
  }
}

void add_group(OpFamilies& table, const Shape& shape, int64_t count) {
  const Shape channels = {shape[1]}, statistic = {shape[0], count};
  const Attrs groups = {{"num_groups", count}};
  Attrs attrs = groups;
  attrs.push_back({"epsilon", 1e-3});
  const bool smooth = is_small(shape);
  const HostArray gamma = real(channels, 0.5, 1.5), x = real(shape, -2, 3);
  tolerate(table.add("group_norm", {x, gamma, real(channels, -1, 1)}, attrs, smooth));
  tolerate(table.add(
      "group_norm_grad",
      {real(shape, -1, 1), x, gamma, real(statistic, -0.5, 0.5), real(statistic, 0.5, 1.5)}, groups,
      smooth));
}

void add_groups(OpFamilies& table) {
  struct Call {
    Shape shape;
    int64_t groups;
  };
  for (const Call& call : std::vector<Call>{{{2, 4, 3}, 2},
                                            {{2, 2}, 1},
                                            {{1, 4, 2, 3}, 4},
                                            {{2, 6, 5, 5}, 3},
                                            {{3, 8, 4, 4}, 2},
                                            {{0, 4, 2}, 2}}) {
    add_group(table, call.shape, call.groups);
  }
}

void add_batch(OpFamilies& table, const Shape& shape) {
  const Shape channels = {shape[1]};
  const bool smooth = is_small(shape);
  const HostArray x = real(shape, -2, 3), gamma = real(channels, 0.5, 1.5);
  const HostArray beta = real(channels, -1, 1), mean = real(channels, -0.5, 0.5);
  const HostArray variance = real(channels, 0.5, 1.5);
  const Attrs attrs = {{"epsilon", 1e-3}, {"momentum", 0.3}};
  tolerate(table.add("batch_norm", {x, gamma, beta, mean, variance}, attrs, smooth));
  tolerate(
      table.add("batch_norm_grad", {real(shape, -1, 1), x, gamma, mean, variance}, {}, smooth));
  tolerate(table.add("batch_norm_inference", {x, gamma, beta, mean, variance}, {{"epsilon", 1e-3}},
                     smooth));
}

void add_batches(OpFamilies& table) {
  for (const Shape& shape : std::vector<Shape>{
           {3, 2}, {2, 3, 4}, {1, 2, 2, 3}, {9, 5}, {20, 1}, {4, 3, 5, 7}, {2, 16, 4, 4}}) {
    add_batch(table, shape);
  }
}

}  // namespace

void add_norm(OpFamilies& table) {
  table.references.insert({
      {"layer_norm", norm("layer", 1e-5)},
      {"layer_norm_grad", norm_grad("layer")},
      {"rms_norm", norm("rms", 1e-6)},
      {"rms_norm_grad", norm_grad("rms")},
      {"group_norm", norm("group", 1e-5)},
      {"group_norm_grad", norm_grad("group")},
      {"batch_norm", norm("batch", 1e-5)},
      {"batch_norm_grad", norm_grad("batch")},
      {"batch_norm_inference", inference},
  });
  table.types.insert({
      {"layer_norm", layer_types},
      {"layer_norm_grad", like({1, 2, 2})},
      {"rms_norm",
       [](const Types& in, const Attrs& attrs) {
         const Types all = layer_types(in, attrs);
         return Types{all[0], all[2]};
       }},
      {"rms_norm_grad", like({1, 2})},
      {"group_norm",
       [](const Types& in, const Attrs& attrs) {
         const TensorType groups{DType::kF32, {in[0].shape[0], int_attr(attrs, "num_groups")}};
         return Types{in[0], groups, groups};
       }},
      {"group_norm_grad", like({1, 2, 2})},
      {"batch_norm",
       [](const Types& in, const Attrs&) {
         const TensorType channels{DType::kF32, {in[0].shape[1]}};
         return Types{in[0], channels, channels, channels, channels};
       }},
      {"batch_norm_grad",
       [](const Types& in, const Attrs&) {
         const TensorType channels{DType::kF32, {in[1].shape[1]}};
         return Types{in[1], channels, channels};
       }},
      {"batch_norm_inference", like({0})},
  });
  const auto from = [](size_t first) {
    return [=](size_t operand, size_t) { return operand >= first; };
  };
  table.wide_operands.insert({{"layer_norm_grad", from(3)},
                              {"rms_norm_grad", from(3)},
                              {"group_norm_grad", from(3)},
                              {"batch_norm", from(1)},
                              {"batch_norm_grad", from(2)},
                              {"batch_norm_inference", from(1)}});
  add_layers(table);
  add_groups(table);
  add_batches(table);
}

void draw_norm(OpFamilies& table, Draw& draw) {
  Shape shape = draw.shape(1 + draw.below(4), 60000);
  const auto axis = draw.below(static_cast<int64_t>(shape.size()));
  for (auto extent = shape.begin() + axis; extent != shape.end(); ++extent) {
    *extent = std::max<int64_t>(*extent, 1);
  }
  add_layer(table, shape, axis);
  const int64_t groups = draw.extent(32);
  Shape planes = draw.shape(2 + draw.below(3), 60000 / groups);
  for (int64_t& extent : planes) extent = std::max<int64_t>(extent, 1);
  if (TensorType{DType::kF32, planes}.elements() > planes[1]) add_batch(table, planes);
  planes[1] *= groups;
  add_group(table, planes, groups);
}

}  // namespace ballast::tests
