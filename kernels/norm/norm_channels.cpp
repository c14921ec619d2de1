// Batch and group normalisation: channels, each with parameters of its own.
#include "kernels/kernels.h"
#include "kernels/norm/norm_parts.h"
#include "kernels/plan/halide_runtime.h"
#include "kernels/plan/plan_builder.h"

#include <utility>

namespace ballast::kernels {
namespace {

NormView batch_view(const ChannelShape& s) {
  return {{s.batch, s.channels, s.inner}, {0, 1, 0}, {0, 1, 0}};
}

NormView group_view(const ChannelShape& s, int64_t groups) {
  const int64_t each = s.channels / groups;
  return {{s.batch, groups, each, s.inner}, {groups, 1, 0, 0}, {0, each, 1, 0}};
}

// Lines of a tensor that have sums of their own, as norm_parts.h takes them, several for each
// channel.
struct ChannelLines {
  Shape tensor;  // [outer, length, inner]
  Shape lines;   // their numbers, of which `channels` is one axis
  size_t channels;

  int64_t count() const { return lines[0] * lines[1]; }
  int64_t of_channel() const { return lines[1 - channels]; }
  // With which a value by channel follows the lines.
  std::vector<int64_t> strides() const {
    return {channels == 0 ? int64_t{1} : 0, channels == 1 ? int64_t{1} : 0};
  }
};

// By (batch, channel).
ChannelLines image_lines(const ChannelShape& s) {
  return {{s.batch * s.channels, s.inner, 1}, {s.batch, s.channels}, 1};
}

// Where images have few pixels or none a batch's lines lie across them; long ones of vectors, which
// would be work for one core and lose digits, in pieces of equal length.
ChannelLines batch_lines(const ChannelShape& s) {
  constexpr int64_t kShortest = 16, kLongest = 128;
  if (s.inner >= kShortest) return image_lines(s);
  const int64_t columns = s.channels * s.inner;
  if (s.inner > 1) return {{1, s.batch, columns}, {s.channels, s.inner}, 0};
  int64_t pieces = 1;
  for (int64_t n = 2; n * kShortest <= s.batch && s.batch / pieces > kLongest; ++n) {
    if (s.batch % n == 0) pieces = n;
  }
  return {{pieces, s.batch / pieces, columns}, {pieces, s.channels}, 1};
}

// On GPUs, by (batch, channel) the sums of dy x' and dy, where channel c of sample b has the
// statistics (b channels + c) / each % count. Returns the slots of the sums.
std::pair<uint32_t, uint32_t> add_channel_sums_on_gpu(const ChannelShape& shape, int64_t each,
                                                      int64_t count, PlanBuilder& builder) {
  const NormGradSlots& s = kNormGradSlots;
  const int64_t lines = shape.batch * shape.channels;
  const uint32_t products = builder.add_floats(lines), slopes = builder.add_floats(lines);
  builder.append(norm_channel_sums(lines, shape.inner, each, count),
                 {s.dy, s.x, s.rstd, s.mean, products, slopes});
  return {products, slopes};
}

// Launches are few, as each costs as much as its work.
Plan plan_group_norm_grad_on_gpu(const ChannelShape& shape, int64_t groups) {
  const NormGradSlots& s = kNormGradSlots;
  PlanBuilder builder(8);
  const int64_t each = shape.channels / groups, count = shape.batch * groups;
  const auto [products, slopes] = add_channel_sums_on_gpu(shape, each, count, builder);
  builder.append(norm_sum_two_lines(shape.batch, shape.channels),
                 {products, slopes, s.dgamma, s.dbeta});
  const uint32_t of_groups = builder.add_floats(count), group_slopes = builder.add_floats(count);
  builder.append(norm_group_sums(shape.batch, groups, each),
                 {products, slopes, s.gamma, of_groups, group_slopes});
  builder.append(norm_dx(DeviceClass::kGpu, "layer", group_view(shape, groups), each * shape.inner),
                 {s.dy, s.x, s.gamma, s.rstd, of_groups, s.mean, group_slopes, s.dx});
  return builder.finish();
}

Plan plan_batch_norm_grad_on_gpu(const ChannelShape& shape) {
  const NormGradSlots& s = kNormGradSlots;
  PlanBuilder builder(8);
  const auto [products, slopes] = add_channel_sums_on_gpu(shape, 1, shape.channels, builder);
  const uint32_t weighted = builder.add_floats(shape.channels);
  const uint32_t weighted_slopes = builder.add_floats(shape.channels);
  builder.append(norm_sum_two_lines(shape.batch, shape.channels, /*is_weighted=*/true),
                 {products, slopes, s.gamma, s.dgamma, s.dbeta, weighted, weighted_slopes});
  builder.append(norm_dx(DeviceClass::kGpu, "layer", batch_view(shape), shape.batch * shape.inner),
                 {s.dy, s.x, s.gamma, s.rstd, weighted, s.mean, weighted_slopes, s.dx});
  return builder.finish();
}

// By line the sums of dy x' and dy, where statistics have the shape `spread` and follow the lines
// with `strides`. Returns the slots of the sums.
std::pair<uint32_t, uint32_t> add_line_sums(DeviceClass device_class, const ChannelLines& lines,
                                            const Shape& spread,
                                            const std::vector<int64_t>& strides,
                                            PlanBuilder& builder) {
  const NormGradSlots& s = kNormGradSlots;
  const auto by_line = [&](uint32_t statistic) {
    const uint32_t slot = builder.add_floats(lines.count());
    builder.append(plan_copy(device_class, DType::kF32, spread, strides), {statistic, slot});
    return slot;
  };
  const uint32_t mean = by_line(s.mean), rstd = by_line(s.rstd);
  const uint32_t products = builder.add_floats(lines.count());
  const uint32_t slopes = builder.add_floats(lines.count());
  builder.append(norm_sums(device_class, "batch", lines.tensor),
                 {s.dy, s.x, rstd, mean, products, slopes});
  return {products, slopes};
}

// dgamma and dbeta of such sums.
void add_channel_sums(DeviceClass device_class, const ChannelLines& lines, uint32_t products,
                      uint32_t slopes, PlanBuilder& builder) {
  const Plan sum = plan_reduce(device_class, "sum", {DType::kF32, lines.lines},
                               {static_cast<int64_t>(1 - lines.channels)},
                               {DType::kF32, {lines.lines[lines.channels]}});
  builder.append(sum, {products, kNormGradSlots.dgamma});
  builder.append(sum, {slopes, kNormGradSlots.dbeta});
}

}  // namespace

Plan plan_group_norm(DeviceClass device_class, const ChannelShape& shape, int64_t groups,
                     float epsilon) {
  if (shape.batch == 0) return {};
  const int64_t lines = shape.batch * groups, length = shape.channels / groups * shape.inner;
  PlanBuilder builder(6);
  builder.append(norm_moments(device_class, "layer", {lines, length}, epsilon), {0, 4, 5});
  builder.append(norm_apply(device_class, "layer", group_view(shape, groups)), {0, 1, 2, 4, 5, 3});
  return builder.finish();
}

Plan plan_group_norm_grad(DeviceClass device_class, const ChannelShape& shape, int64_t groups) {
  const NormGradSlots& s = kNormGradSlots;
  PlanBuilder builder(8);
  if (shape.batch == 0) {
    builder.append(norm_sum_lines(device_class, 0, shape.channels), {s.x, s.dgamma});
    builder.append(norm_sum_lines(device_class, 0, shape.channels), {s.x, s.dbeta});
    return builder.finish();
  }
  if (device_class == DeviceClass::kGpu) return plan_group_norm_grad_on_gpu(shape, groups);
  const int64_t each = shape.channels / groups;
  const ChannelLines images = image_lines(shape);
  const auto [products, slopes] =
      add_line_sums(device_class, images, {shape.batch, groups, each}, {groups, 1, 0}, builder);
  add_channel_sums(device_class, images, products, slopes, builder);
  // The sums of a group weigh its channels with gamma.
  const TensorType lines{DType::kF32, {shape.batch, shape.channels}},
      channels{DType::kF32, {shape.channels}};
  const TensorType split{DType::kF32, {shape.batch * groups, each}},
      sums{DType::kF32, {shape.batch * groups}};
  const uint32_t weighted = builder.add_region(lines.bytes());
  const uint32_t group_products = builder.add_region(sums.bytes());
  const uint32_t group_slopes = builder.add_region(sums.bytes());
  const auto weigh = [&](uint32_t from, uint32_t to) {
    builder.append(plan_pointwise(device_class, "mul", {lines, channels}, lines),
                   {from, s.gamma, weighted});
    builder.append(plan_reduce(device_class, "sum", split, {1}, sums), {weighted, to});
  };
  weigh(products, group_products);
  weigh(slopes, group_slopes);
  builder.append(norm_dx(device_class, "layer", group_view(shape, groups), each * shape.inner),
                 {s.dy, s.x, s.gamma, s.rstd, group_products, s.mean, group_slopes, s.dx});
  return builder.finish();
}

Plan plan_batch_norm(DeviceClass device_class, const ChannelShape& shape, float epsilon,
                     float momentum) {
  const ChannelLines lines = batch_lines(shape);
  // Inputs x, gamma, beta, running mean and variance; outputs y, running ones, mean, rstd.
  PlanBuilder builder(10);
  const uint32_t means = builder.add_floats(lines.count());
  const uint32_t squares = builder.add_floats(lines.count());
  builder.append(norm_moments(device_class, "batch", lines.tensor, 0), {0, means, squares});
  const std::string kernel = "batch_norm_moments";
  const auto by_line = [&](uint32_t slot) {
    const bool is_inner = lines.channels == 1;
    return Operand{
        slot,
        DType::kF32,
        {shape.channels, lines.of_channel(), 1},
        {is_inner ? 1 : lines.of_channel(), is_inner ? shape.channels : 1, lines.count()},
        {}};
  };
  const auto by_channel = [&](uint32_t slot) {
    return Operand{slot, DType::kF32, {shape.channels, 1}, {1, shape.channels}, {}};
  };
  Recorder recorder(kNoAliases);
  recorder.call(
      kernel, device_class,
      {by_line(0), by_line(1), by_channel(2), by_channel(3), static_cast<float>(lines.tensor[1]),
       epsilon, momentum, by_channel(4), by_channel(5), by_channel(6), by_channel(7)});
  builder.append(recorder.finish(), {means, squares, 3, 4, 6, 7, 8, 9});
  builder.append(norm_apply(device_class, "layer", batch_view(shape)), {0, 1, 2, 8, 9, 5});
  return builder.finish();
}

Plan plan_batch_norm_grad(DeviceClass device_class, const ChannelShape& shape) {
  if (device_class == DeviceClass::kGpu) return plan_batch_norm_grad_on_gpu(shape);
  const NormGradSlots& s = kNormGradSlots;
  PlanBuilder builder(8);
  const ChannelLines lines = batch_lines(shape);
  const auto sums = add_line_sums(device_class, lines, lines.lines, lines.strides(), builder);
  add_channel_sums(device_class, lines, sums.first, sums.second, builder);
  const TensorType channels{DType::kF32, {shape.channels}};
  const uint32_t products = builder.add_region(channels.bytes());
  const uint32_t slopes = builder.add_region(channels.bytes());
  const Plan mul = plan_pointwise(device_class, "mul", {channels, channels}, channels);
  builder.append(mul, {s.dgamma, s.gamma, products});
  builder.append(mul, {s.dbeta, s.gamma, slopes});
  builder.append(norm_dx(device_class, "layer", batch_view(shape), shape.batch * shape.inner),
                 {s.dy, s.x, s.gamma, s.rstd, products, s.mean, slopes, s.dx});
  return builder.finish();
}

Plan plan_batch_norm_inference(DeviceClass device_class, const ChannelShape& shape, float epsilon) {
  if (shape.batch * shape.channels * shape.inner == 0) return {};
  return norm_apply(device_class, "inference", batch_view(shape), epsilon);
}

}  // namespace ballast::kernels
