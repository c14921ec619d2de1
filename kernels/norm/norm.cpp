#include "kernels/kernels.h"
#include "kernels/norm/norm_limits.h"
#include "kernels/norm/norm_parts.h"
#include "kernels/plan_builder.h"
#include "kernels/pointwise/pointwise_ops.h"
#include "kernels/reduce/axis.h"

#include <algorithm>

namespace ballast::kernels {
namespace {

constexpr DType kF32 = DType::kF32;

Plan sum_first(DeviceClass device_class, int64_t first, int64_t second) {
  return plan_reduce(device_class, "sum", {kF32, {first, second}}, {0}, {kF32, {second}});
}

// ---- layers

NormView layer_view(int64_t rows, int64_t length) { return {{rows, length}, {1, 0}, {0, 1}}; }

// Rows that a CPU reads once.
bool is_fused(DeviceClass device_class, int64_t rows, int64_t length) {
  return device_class == DeviceClass::kCpu && AxisView(device_class, {rows, length}, 1).is_rows();
}

Plan fused_norm(const std::string& kind, int64_t rows, int64_t length, float epsilon) {
  const DeviceClass cpu = DeviceClass::kCpu;
  const AxisView view(cpu, {rows, length}, 1);
  const std::string kernel = fmt::format(
      "{}_norm_{}{}", kind, length % kRowStep == 0 ? "whole_" : "", view.short_layout());
  const bool is_rms = kind == "rms";
  const auto parameter = [&](uint32_t slot) { return Operand{slot, kF32, {length}, {1}, {}}; };
  std::vector<HostArg> args = {view.tensor(0), parameter(1), epsilon, view.rows_per_group()};
  uint32_t slot = 2;
  if (!is_rms) args.push_back(parameter(slot++));
  args.push_back(view.tensor(slot++));
  if (!is_rms) args.push_back(view.per_line(slot++));
  args.push_back(view.per_line(slot));
  Recorder recorder(view.rules());
  recorder.call(kernel, cpu, args);
  return recorder.finish();
}

// Rows that a CPU's gradient kernel takes.
bool has_fused_grad(DeviceClass device_class, int64_t length) {
  return device_class == DeviceClass::kCpu && length >= kNormGradBlock;
}

// How many rows share a part of dgamma and dbeta.
int64_t parameter_chunk(DeviceClass device_class, int64_t rows, int64_t length) {
  if (has_fused_grad(device_class, length)) {
    // dy and x of a group stay in the second cache; there are groups for all cores.
    constexpr int64_t kElements = 65536, kGroups = 8;
    return std::max<int64_t>(1, std::min(kElements / length, ceil_div(rows, kGroups)));
  }
  // As many chunks as keep all cores busy beside the vectors across; each long enough to be worth
  // the second pass over what it leaves.
  const int64_t wanted = (device_class == DeviceClass::kCpu ? 16 : 256) / ceil_div(length, 64) + 1;
  return ceil_div(rows, std::clamp<int64_t>(rows / 16, 1, wanted));
}

// Inputs dy, x, rstd, gamma, mean (rms: no mean); outputs dx, and by chunk of rows the sums of dy
// x', and of dy.
Plan fused_grad(const std::string& kind, int64_t rows, int64_t length, int64_t chunk) {
  const DeviceClass cpu = DeviceClass::kCpu;
  const AxisView view(cpu, {rows, length}, 1);
  const std::string kernel = kind + "_norm_grad_rows";
  const auto sums = [&](uint32_t slot) {
    return Operand{slot, kF32, {length, ceil_div(rows, chunk)}, {1, length}, {}};
  };
  const bool is_rms = kind == "rms";
  std::vector<HostArg> args = {view.tensor(0), view.tensor(1), view.per_line(2),
                               checked_int32(chunk), Operand{3, kF32, {length}, {1}, {}}};
  uint32_t slot = 4;
  if (!is_rms) args.push_back(view.per_line(slot++));
  args.push_back(view.tensor(slot++));
  args.push_back(sums(slot++));
  if (!is_rms) args.push_back(sums(slot));
  Recorder recorder(view.rules());
  recorder.call(kernel, cpu, args);
  return recorder.finish();
}

// Inputs dy, x, rstd, mean (rms: no mean); outputs by chunk of rows the sums of dy x', and of dy.
Plan parameter_sums(DeviceClass device_class, const std::string& kind, int64_t rows, int64_t length,
                    int64_t chunk) {
  const std::string kernel = "norm_parameter_sums_" + kind;
  const auto lines = [&](uint32_t slot, int64_t count) {
    return Operand{slot, kF32, {length, count}, {1, length}, {}};
  };
  const auto by_row = [&](uint32_t slot) { return Operand{slot, kF32, {rows}, {1}, {}}; };
  const int64_t chunks = ceil_div(rows, chunk);
  std::vector<HostArg> args = {lines(0, rows), lines(1, rows), by_row(2), checked_int32(chunk)};
  uint32_t slot = 3;
  if (kind != "rms") args.push_back(by_row(slot++));
  args.push_back(lines(slot++, chunks));
  if (kind != "rms") args.push_back(lines(slot, chunks));
  Recorder recorder(kNoAliases);
  recorder.call(kernel, device_class, args);
  return recorder.finish();
}

struct GradSlots {
  uint32_t dy, x, gamma, mean, rstd, dx, dgamma, dbeta;
};

Plan plan_layer_grad(DeviceClass device_class, const std::string& kind, int64_t rows,
                     int64_t length, size_t operands, const GradSlots& s) {
  const bool is_rms = kind == "rms";
  PlanBuilder builder(operands);
  if (rows == 0) {
    builder.append(sum_first(device_class, 0, length), {s.x, s.dgamma});
    if (!is_rms) builder.append(sum_first(device_class, 0, length), {s.x, s.dbeta});
    return builder.finish();
  }
  const int64_t chunk = parameter_chunk(device_class, rows, length);
  const int64_t chunks = ceil_div(rows, chunk);
  const auto partial = [&](uint32_t whole) {
    return chunks == 1 ? whole : builder.add_floats(chunks * length);
  };
  const uint32_t dgamma = partial(s.dgamma), dbeta = is_rms ? 0 : partial(s.dbeta);
  if (has_fused_grad(device_class, length)) {
    std::vector<uint32_t> slots = {s.dy, s.x, s.rstd, s.gamma, s.dx, dgamma};
    if (!is_rms) slots = {s.dy, s.x, s.rstd, s.gamma, s.mean, s.dx, dgamma, dbeta};
    builder.append(fused_grad(kind, rows, length, chunk), slots);
  } else {
    const uint32_t products = builder.add_floats(rows);
    const uint32_t slopes = is_rms ? 0 : builder.add_floats(rows);
    std::vector<uint32_t> sums = {s.dy, s.x, s.rstd, s.gamma, products};
    std::vector<uint32_t> dx = {s.dy, s.x, s.gamma, s.rstd, products, s.dx};
    std::vector<uint32_t> parameters = {s.dy, s.x, s.rstd, dgamma};
    if (!is_rms) {
      sums = {s.dy, s.x, s.rstd, s.gamma, s.mean, products, slopes};
      dx = {s.dy, s.x, s.gamma, s.rstd, products, s.mean, slopes, s.dx};
      parameters = {s.dy, s.x, s.rstd, s.mean, dgamma, dbeta};
    }
    builder.append(norm_sums(device_class, kind, rows, length), sums);
    builder.append(norm_dx(device_class, kind, layer_view(rows, length), length), dx);
    builder.append(parameter_sums(device_class, kind, rows, length, chunk), parameters);
  }
  if (chunks > 1) {
    builder.append(sum_first(device_class, chunks, length), {dgamma, s.dgamma});
    if (!is_rms) builder.append(sum_first(device_class, chunks, length), {dbeta, s.dbeta});
  }
  return builder.finish();
}

// ---- channels

NormView batch_view(const ChannelShape& s) {
  return {{s.batch, s.channels, s.inner}, {0, 1, 0}, {0, 1, 0}};
}

NormView group_view(const ChannelShape& s, int64_t groups) {
  const int64_t each = s.channels / groups;
  return {{s.batch, groups, each, s.inner}, {groups, 1, 0, 0}, {0, each, 1, 0}};
}

// The slots of dy, x, gamma, mean, rstd, dx, dgamma, dbeta, in this order.
constexpr GradSlots kChannelGrad = {0, 1, 2, 3, 4, 5, 6, 7};

// By (batch, channel) the sums of dy x' and dy; then dgamma and dbeta. Returns the slots of the
// sums.
std::pair<uint32_t, uint32_t> add_channel_sums(DeviceClass device_class, const ChannelShape& shape,
                                               const Shape& spread,
                                               const std::vector<int64_t>& strides,
                                               PlanBuilder& builder) {
  const GradSlots& s = kChannelGrad;
  const int64_t lines = shape.batch * shape.channels;
  const uint32_t mean = builder.add_floats(lines);
  const uint32_t rstd = builder.add_floats(lines);
  const uint32_t products = builder.add_floats(lines);
  const uint32_t slopes = builder.add_floats(lines);
  builder.append(plan_copy(device_class, kF32, spread, strides), {s.mean, mean});
  builder.append(plan_copy(device_class, kF32, spread, strides), {s.rstd, rstd});
  builder.append(norm_sums(device_class, "batch", lines, shape.inner),
                 {s.dy, s.x, rstd, mean, products, slopes});
  builder.append(sum_first(device_class, shape.batch, shape.channels), {products, s.dgamma});
  builder.append(sum_first(device_class, shape.batch, shape.channels), {slopes, s.dbeta});
  return {products, slopes};
}

}  // namespace

Plan plan_layer_norm(DeviceClass device_class, int64_t rows, int64_t length, float epsilon) {
  if (rows == 0) return {};
  if (is_fused(device_class, rows, length)) return fused_norm("layer", rows, length, epsilon);
  PlanBuilder builder(6);
  builder.append(norm_moments(device_class, "layer", rows, length, epsilon), {0, 4, 5});
  builder.append(norm_apply(device_class, "layer", layer_view(rows, length)), {0, 1, 2, 4, 5, 3});
  return builder.finish();
}

Plan plan_layer_norm_grad(DeviceClass device_class, int64_t rows, int64_t length) {
  return plan_layer_grad(device_class, "layer", rows, length, 8, kChannelGrad);
}

Plan plan_rms_norm(DeviceClass device_class, int64_t rows, int64_t length, float epsilon) {
  if (rows == 0) return {};
  if (is_fused(device_class, rows, length)) return fused_norm("rms", rows, length, epsilon);
  PlanBuilder builder(4);
  const uint32_t no_mean = builder.add_floats(rows);
  builder.append(norm_moments(device_class, "rms", rows, length, epsilon), {0, no_mean, 3});
  builder.append(norm_apply(device_class, "rms", layer_view(rows, length)), {0, 1, 3, 2});
  return builder.finish();
}

Plan plan_rms_norm_grad(DeviceClass device_class, int64_t rows, int64_t length) {
  return plan_layer_grad(device_class, "rms", rows, length, 6, {0, 1, 2, 0, 3, 4, 5, 0});
}

Plan plan_group_norm(DeviceClass device_class, const ChannelShape& shape, int64_t groups,
                     float epsilon) {
  if (shape.batch == 0) return {};
  const int64_t lines = shape.batch * groups, length = shape.channels / groups * shape.inner;
  PlanBuilder builder(6);
  builder.append(norm_moments(device_class, "layer", lines, length, epsilon), {0, 4, 5});
  builder.append(norm_apply(device_class, "layer", group_view(shape, groups)), {0, 1, 2, 4, 5, 3});
  return builder.finish();
}

Plan plan_group_norm_grad(DeviceClass device_class, const ChannelShape& shape, int64_t groups) {
  const GradSlots& s = kChannelGrad;
  PlanBuilder builder(8);
  if (shape.batch == 0) {
    builder.append(sum_first(device_class, 0, shape.channels), {s.x, s.dgamma});
    builder.append(sum_first(device_class, 0, shape.channels), {s.x, s.dbeta});
    return builder.finish();
  }
  const int64_t each = shape.channels / groups;
  const auto [products, slopes] =
      add_channel_sums(device_class, shape, {shape.batch, groups, each}, {groups, 1, 0}, builder);
  // The sums of a group weigh its channels with gamma.
  const TensorType lines{kF32, {shape.batch, shape.channels}}, channels{kF32, {shape.channels}};
  const TensorType split{kF32, {shape.batch * groups, each}}, sums{kF32, {shape.batch * groups}};
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
  const int64_t lines = shape.batch * shape.channels;
  // Inputs x, gamma, beta, running mean and variance; outputs y, running ones, mean, rstd.
  PlanBuilder builder(10);
  const uint32_t means = builder.add_floats(lines);
  const uint32_t squares = builder.add_floats(lines);
  builder.append(norm_moments(device_class, "batch", lines, shape.inner, 0), {0, means, squares});
  const std::string kernel = "batch_norm_moments";
  const auto by_line = [&](uint32_t slot) {
    return Operand{slot, kF32, {shape.channels, shape.batch, 1}, {1, shape.channels, lines}, {}};
  };
  const auto by_channel = [&](uint32_t slot) {
    return Operand{slot, kF32, {shape.channels, 1}, {1, shape.channels}, {}};
  };
  Recorder recorder(kNoAliases);
  recorder.call(
      kernel, device_class,
      {by_line(0), by_line(1), by_channel(2), by_channel(3), static_cast<float>(shape.inner),
       epsilon, momentum, by_channel(4), by_channel(5), by_channel(6), by_channel(7)});
  builder.append(recorder.finish(), {means, squares, 3, 4, 6, 7, 8, 9});
  builder.append(norm_apply(device_class, "layer", batch_view(shape)), {0, 1, 2, 8, 9, 5});
  return builder.finish();
}

Plan plan_batch_norm_grad(DeviceClass device_class, const ChannelShape& shape) {
  const GradSlots& s = kChannelGrad;
  PlanBuilder builder(8);
  add_channel_sums(device_class, shape, {shape.batch, shape.channels}, {0, 1}, builder);
  const TensorType channels{kF32, {shape.channels}};
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
