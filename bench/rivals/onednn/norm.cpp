// Softmax and the normalisations.
#include "bench/rivals/onednn/onednn.h"

#include <oneapi/dnnl/dnnl_version.h>

namespace ballast::bench::onednn {
namespace {

using dnnl::algorithm;
using dnnl::prop_kind;

int axis_of(const Case& c, size_t rank) {
  const int64_t axis = int_of(c, "axis", -1);
  return static_cast<int>(axis < 0 ? axis + static_cast<int64_t>(rank) : axis);
}

std::vector<Variant> softmax(const Case& c, algorithm kind) {
  const Desc desc = plain(c.inputs[0].shape);
  const dnnl::softmax_forward::primitive_desc pd(engine(), prop_kind::forward_inference, kind, desc,
                                                 desc, axis_of(c, c.inputs[0].shape.size()),
                                                 attributes());
  const Memory y = empty(desc);
  return {variant(
      "", {action<dnnl::softmax_forward>(pd, {{DNNL_ARG_SRC, input(c, 0)}, {DNNL_ARG_DST, y}})},
      {y})};
}

// Inputs dy and y.
std::vector<Variant> softmax_grad(const Case& c, algorithm kind) {
  const Desc desc = plain(c.inputs[0].shape);
  const int axis = axis_of(c, c.inputs[0].shape.size());
  const dnnl::softmax_forward::primitive_desc hint(engine(), prop_kind::forward_training, kind,
                                                   desc, desc, axis);
  const dnnl::softmax_backward::primitive_desc pd(engine(), kind, desc, desc, desc, axis, hint,
                                                  attributes());
  const Memory dx = empty(desc);
  return {variant("",
                  {action<dnnl::softmax_backward>(pd, {{DNNL_ARG_DIFF_DST, input(c, 0)},
                                                       {DNNL_ARG_DST, input(c, 1)},
                                                       {DNNL_ARG_DIFF_SRC, dx}})},
                  {dx})};
}

using Flags = dnnl::normalization_flags;

// oneDNN keeps the variance where ours keeps 1 / sqrt(variance + epsilon).
Memory variance_of(const Case& c, size_t rstd, const Desc& desc, double epsilon) {
  std::vector<float> values = values_of(c.inputs[rstd], rstd);
  for (float& value : values) value = static_cast<float>(1.0 / (value * value) - epsilon);
  return upload(desc, values);
}

Dims without_last(Dims dims) {
  dims.pop_back();
  return dims;
}

dnnl::layer_normalization_forward::primitive_desc layer_norm_desc(const Desc& x, const Desc& row,
                                                                  float epsilon, Flags flags) {
  return dnnl::layer_normalization_forward::primitive_desc(engine(), prop_kind::forward_training, x,
                                                           x, row, epsilon, flags, attributes());
}

std::vector<Variant> layer_norm(const Case& c) {
  if (int_of(c, "begin_norm_axis", -1) != -1) return {};
  const Desc x = plain(c.inputs[0].shape), row = plain(without_last(c.inputs[0].shape));
  const auto pd = layer_norm_desc(x, row, static_cast<float>(double_of(c, "epsilon", 1e-5)),
                                  Flags::use_scale | Flags::use_shift);
  const Memory y = empty(x);
  return {variant("",
                  {action<dnnl::layer_normalization_forward>(pd, {{DNNL_ARG_SRC, input(c, 0)},
                                                                  {DNNL_ARG_SCALE, input(c, 1)},
                                                                  {DNNL_ARG_SHIFT, input(c, 2)},
                                                                  {DNNL_ARG_MEAN, empty(row)},
                                                                  {DNNL_ARG_VARIANCE, empty(row)},
                                                                  {DNNL_ARG_DST, y}})},
                  {y})};
}

// Inputs dy, x, gamma, mean, rstd.
std::vector<Variant> layer_norm_grad(const Case& c) {
  if (int_of(c, "begin_norm_axis", -1) != -1) return {};
  constexpr float kEpsilon = 1e-5f;
  const Desc x = plain(c.inputs[1].shape), row = plain(without_last(c.inputs[1].shape)),
             gamma = plain(c.inputs[2].shape);
  const Flags flags = Flags::use_scale | Flags::use_shift;
  const dnnl::layer_normalization_backward::primitive_desc pd(
      engine(), prop_kind::backward, x, x, x, row, kEpsilon, flags,
      layer_norm_desc(x, row, kEpsilon, flags), attributes());
  const Memory dx = empty(x), dgamma = empty(gamma), dbeta = empty(gamma);
  return {variant("",
                  {action<dnnl::layer_normalization_backward>(
                      pd, {{DNNL_ARG_DIFF_DST, input(c, 0)},
                           {DNNL_ARG_SRC, input(c, 1)},
                           {DNNL_ARG_SCALE, input(c, 2)},
                           {DNNL_ARG_SHIFT, input(c, 2)},  // the older release wants one
                           {DNNL_ARG_MEAN, input(c, 3, row)},
                           {DNNL_ARG_VARIANCE, variance_of(c, 4, row, kEpsilon)},
                           {DNNL_ARG_DIFF_SRC, dx},
                           {DNNL_ARG_DIFF_SCALE, dgamma},
                           {DNNL_ARG_DIFF_SHIFT, dbeta}})},
                  {dx, dgamma, dbeta})};
}

dnnl::batch_normalization_forward::primitive_desc batch_norm_desc(prop_kind kind, const Desc& x,
                                                                  float epsilon, Flags flags) {
  return dnnl::batch_normalization_forward::primitive_desc(engine(), kind, x, x, epsilon, flags,
                                                           attributes());
}

// Inputs x, gamma, beta, mean, variance; the statistics are of the batch, or given.
std::vector<Variant> batch_norm(const Case& c, bool is_training) {
  const Desc x = plain(c.inputs[0].shape), channel = plain(c.inputs[1].shape);
  const Flags parameters = Flags::use_scale | Flags::use_shift;
  const auto pd =
      batch_norm_desc(is_training ? prop_kind::forward_training : prop_kind::forward_inference, x,
                      static_cast<float>(double_of(c, "epsilon", 1e-5)),
                      is_training ? parameters : parameters | Flags::use_global_stats);
  const Memory y = empty(x);
  return {variant("",
                  {action<dnnl::batch_normalization_forward>(
                      pd, {{DNNL_ARG_SRC, input(c, 0)},
                           {DNNL_ARG_SCALE, input(c, 1)},
                           {DNNL_ARG_SHIFT, input(c, 2)},
                           {DNNL_ARG_MEAN, is_training ? empty(channel) : input(c, 3)},
                           {DNNL_ARG_VARIANCE, is_training ? empty(channel) : input(c, 4)},
                           {DNNL_ARG_DST, y}})},
                  {y})};
}

// Inputs dy, x, gamma, mean, rstd.
std::vector<Variant> batch_norm_grad(const Case& c) {
  constexpr float kEpsilon = 1e-5f;
  const Desc x = plain(c.inputs[1].shape), channel = plain(c.inputs[2].shape);
  const Flags flags = Flags::use_scale | Flags::use_shift;
  const dnnl::batch_normalization_backward::primitive_desc pd(
      engine(), prop_kind::backward, x, x, x, kEpsilon, flags,
      batch_norm_desc(prop_kind::forward_training, x, kEpsilon, flags), attributes());
  const Memory dx = empty(x), dgamma = empty(channel), dbeta = empty(channel);
  return {variant("",
                  {action<dnnl::batch_normalization_backward>(
                      pd, {{DNNL_ARG_DIFF_DST, input(c, 0)},
                           {DNNL_ARG_SRC, input(c, 1)},
                           {DNNL_ARG_SCALE, input(c, 2)},
                           {DNNL_ARG_MEAN, input(c, 3)},
                           {DNNL_ARG_VARIANCE, variance_of(c, 4, channel, kEpsilon)},
                           {DNNL_ARG_DIFF_SRC, dx},
                           {DNNL_ARG_DIFF_SCALE, dgamma},
                           {DNNL_ARG_DIFF_SHIFT, dbeta}})},
                  {dx, dgamma, dbeta})};
}

// Newer than the release with OpenMP.
#if DNNL_VERSION_MAJOR > 3 || DNNL_VERSION_MINOR >= 8
std::vector<Variant> rms_norm(const Case& c) {
  if (int_of(c, "begin_norm_axis", -1) != -1) return {};
  const Desc x = plain(c.inputs[0].shape), row = plain(without_last(c.inputs[0].shape));
  const auto pd = layer_norm_desc(x, row, static_cast<float>(double_of(c, "epsilon", 1e-6)),
                                  Flags::use_scale | Flags::rms_norm);
  const Memory y = empty(x);
  return {variant("",
                  {action<dnnl::layer_normalization_forward>(pd, {{DNNL_ARG_SRC, input(c, 0)},
                                                                  {DNNL_ARG_SCALE, input(c, 1)},
                                                                  {DNNL_ARG_VARIANCE, empty(row)},
                                                                  {DNNL_ARG_DST, y}})},
                  {y})};
}

std::vector<Variant> group_norm(const Case& c) {
  const Desc x = plain(c.inputs[0].shape);
  const auto groups = int_of(c, "num_groups");
  const dnnl::group_normalization_forward::primitive_desc pd(
      engine(), prop_kind::forward_training, x, x, groups,
      static_cast<float>(double_of(c, "epsilon", 1e-5)), Flags::use_scale | Flags::use_shift,
      attributes());
  const Memory y = empty(x), mean = empty(pd.mean_desc()), variance = empty(pd.variance_desc());
  return {variant("",
                  {action<dnnl::group_normalization_forward>(pd, {{DNNL_ARG_SRC, input(c, 0)},
                                                                  {DNNL_ARG_SCALE, input(c, 1)},
                                                                  {DNNL_ARG_SHIFT, input(c, 2)},
                                                                  {DNNL_ARG_MEAN, mean},
                                                                  {DNNL_ARG_VARIANCE, variance},
                                                                  {DNNL_ARG_DST, y}})},
                  {y})};
}

void add_newer(Makers& makers) {
  makers["rms_norm"] = rms_norm;
  makers["group_norm"] = group_norm;
}
#else
void add_newer(Makers&) {}
#endif

}  // namespace

void add_norm(Makers& makers) {
  makers["layer_norm"] = layer_norm;
  makers["layer_norm_grad"] = layer_norm_grad;
  makers["batch_norm"] = [](const Case& c) { return batch_norm(c, true); };
  makers["batch_norm_inference"] = [](const Case& c) { return batch_norm(c, false); };
  makers["batch_norm_grad"] = batch_norm_grad;
  add_newer(makers);
  for (const bool is_log : {false, true}) {
    const algorithm kind = is_log ? algorithm::softmax_log : algorithm::softmax_accurate;
    const std::string name = is_log ? "log_softmax" : "softmax";
    makers[name] = [kind](const Case& c) { return softmax(c, kind); };
    makers[name + "_grad"] = [kind](const Case& c) { return softmax_grad(c, kind); };
  }
}

}  // namespace ballast::bench::onednn
