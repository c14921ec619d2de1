// Layer and RMS normalisation: rows, with parameters along them.
#include "kernels/kernels.h"
#include "kernels/norm/norm_limits.h"
#include "kernels/norm/norm_parts.h"
#include "kernels/plan/halide_runtime.h"
#include "kernels/plan/plan_builder.h"
#include "kernels/reduce/axis.h"

#include <algorithm>

namespace ballast::kernels {
namespace {

NormView layer_view(int64_t rows, int64_t length) { return {{rows, length}, {1, 0}, {0, 1}}; }

// Rows that are read once.
bool is_fused(DeviceClass device_class, int64_t rows, int64_t length) {
  return AxisView(device_class, {rows, length}, 1).is_rows();
}

Plan fused_norm(DeviceClass device_class, const std::string& kind, int64_t rows, int64_t length,
                float epsilon) {
  const AxisView view(device_class, {rows, length}, 1);
  const std::string on_cpu =
      fmt::format("{}{}", length % kRowStep == 0 ? "whole_" : "", view.short_layout());
  const std::string kernel = fmt::format(
      "{}_norm_{}", kind, device_class == DeviceClass::kCpu ? on_cpu : view.layout(kLongLine));
  const bool is_rms = kind == "rms";
  const auto parameter = [&](uint32_t slot) {
    return Operand{slot, DType::kF32, {length}, {1}, {}};
  };
  std::vector<HostArg> args = {view.tensor(0), parameter(1), epsilon, view.rows_per_group()};
  uint32_t slot = 2;
  if (!is_rms) args.push_back(parameter(slot++));
  args.push_back(view.tensor(slot++));
  if (!is_rms) args.push_back(view.per_line(slot++));
  args.push_back(view.per_line(slot));
  Recorder recorder(view.rules());
  recorder.call(kernel, device_class, args);
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
  const int64_t wanted = (device_class == DeviceClass::kCpu ? 16 : 2048) / ceil_div(length, 64) + 1;
  return ceil_div(rows, std::clamp<int64_t>(rows / 16, 1, wanted));
}

// Inputs dy, x, rstd, gamma, mean (rms: no mean); outputs dx, and by chunk of rows the sums of dy
// x', and of dy.
Plan fused_grad(const std::string& kind, int64_t rows, int64_t length, int64_t chunk) {
  const DeviceClass cpu = DeviceClass::kCpu;
  const AxisView view(cpu, {rows, length}, 1);
  const std::string kernel = kind + "_norm_grad_rows";
  const auto sums = [&](uint32_t slot) {
    return Operand{slot, DType::kF32, {length, ceil_div(rows, chunk)}, {1, length}, {}};
  };
  const bool is_rms = kind == "rms";
  std::vector<HostArg> args = {view.tensor(0), view.tensor(1), view.per_line(2),
                               checked_int32(chunk), Operand{3, DType::kF32, {length}, {1}, {}}};
  uint32_t slot = 4;
  if (!is_rms) args.push_back(view.per_line(slot++));
  args.push_back(view.tensor(slot++));
  args.push_back(sums(slot++));
  if (!is_rms) args.push_back(sums(slot));
  Recorder recorder(view.rules());
  recorder.call(kernel, cpu, args);
  return recorder.finish();
}

// GPUs: the same without the sums by chunk.
Plan fused_dx(const std::string& kind, int64_t rows, int64_t length) {
  const AxisView view(DeviceClass::kGpu, {rows, length}, 1);
  std::vector<HostArg> args = {view.tensor(0), view.tensor(1), view.per_line(2),
                               view.rows_per_group(), Operand{3, DType::kF32, {length}, {1}, {}}};
  uint32_t slot = 4;
  if (kind != "rms") args.push_back(view.per_line(slot++));
  args.push_back(view.tensor(slot));
  Recorder recorder(kNoAliases);
  recorder.call(fmt::format("{}_norm_grad_{}", kind, view.layout(kLongLine)), DeviceClass::kGpu,
                args);
  return recorder.finish();
}

// Inputs dy, x, rstd, mean (rms: no mean); outputs by chunk of rows the sums of dy x', and of dy.
Plan parameter_sums(DeviceClass device_class, const std::string& kind, int64_t rows, int64_t length,
                    int64_t chunk) {
  const std::string kernel = "norm_parameter_sums_" + kind;
  const auto lines = [&](uint32_t slot, int64_t count) {
    return Operand{slot, DType::kF32, {length, count}, {1, length}, {}};
  };
  const auto by_row = [&](uint32_t slot) { return Operand{slot, DType::kF32, {rows}, {1}, {}}; };
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

// dx apart from the sums by chunk.
void append_dx(DeviceClass device_class, const std::string& kind, int64_t rows, int64_t length,
               const NormGradSlots& s, PlanBuilder& builder) {
  const bool is_rms = kind == "rms";
  if (device_class == DeviceClass::kGpu && is_fused(device_class, rows, length)) {
    std::vector<uint32_t> slots = {s.dy, s.x, s.rstd, s.gamma, s.dx};
    if (!is_rms) slots.insert(slots.end() - 1, s.mean);
    return builder.append(fused_dx(kind, rows, length), slots);
  }
  const uint32_t products = builder.add_floats(rows);
  const uint32_t slopes = is_rms ? 0 : builder.add_floats(rows);
  std::vector<uint32_t> sums = {s.dy, s.x, s.rstd, s.gamma, products};
  std::vector<uint32_t> dx = {s.dy, s.x, s.gamma, s.rstd, products, s.dx};
  if (!is_rms) {
    sums = {s.dy, s.x, s.rstd, s.gamma, s.mean, products, slopes};
    dx = {s.dy, s.x, s.gamma, s.rstd, products, s.mean, slopes, s.dx};
  }
  builder.append(norm_sums(device_class, kind, {rows, length}), sums);
  builder.append(norm_dx(device_class, kind, layer_view(rows, length), length), dx);
}

Plan plan_layer_grad(DeviceClass device_class, const std::string& kind, int64_t rows,
                     int64_t length, size_t operands, const NormGradSlots& s) {
  const bool is_rms = kind == "rms";
  PlanBuilder builder(operands);
  if (rows == 0) {
    builder.append(norm_sum_lines(device_class, 0, length), {s.x, s.dgamma});
    if (!is_rms) builder.append(norm_sum_lines(device_class, 0, length), {s.x, s.dbeta});
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
    append_dx(device_class, kind, rows, length, s, builder);
    std::vector<uint32_t> parameters = {s.dy, s.x, s.rstd, dgamma};
    if (!is_rms) parameters = {s.dy, s.x, s.rstd, s.mean, dgamma, dbeta};
    builder.append(parameter_sums(device_class, kind, rows, length, chunk), parameters);
  }
  if (chunks > 1 && device_class == DeviceClass::kGpu && !is_rms) {
    builder.append(norm_sum_two_lines(chunks, length), {dgamma, dbeta, s.dgamma, s.dbeta});
  } else if (chunks > 1) {
    builder.append(norm_sum_lines(device_class, chunks, length), {dgamma, s.dgamma});
    if (!is_rms) builder.append(norm_sum_lines(device_class, chunks, length), {dbeta, s.dbeta});
  }
  return builder.finish();
}

}  // namespace

Plan plan_layer_norm(DeviceClass device_class, int64_t rows, int64_t length, float epsilon) {
  if (rows == 0) return {};
  if (is_fused(device_class, rows, length)) {
    return fused_norm(device_class, "layer", rows, length, epsilon);
  }
  PlanBuilder builder(6);
  builder.append(norm_moments(device_class, "layer", {rows, length}, epsilon), {0, 4, 5});
  builder.append(norm_apply(device_class, "layer", layer_view(rows, length)), {0, 1, 2, 4, 5, 3});
  return builder.finish();
}

Plan plan_layer_norm_grad(DeviceClass device_class, int64_t rows, int64_t length) {
  return plan_layer_grad(device_class, "layer", rows, length, 8, kNormGradSlots);
}

Plan plan_rms_norm(DeviceClass device_class, int64_t rows, int64_t length, float epsilon) {
  if (rows == 0) return {};
  if (is_fused(device_class, rows, length)) {
    return fused_norm(device_class, "rms", rows, length, epsilon);
  }
  PlanBuilder builder(4);
  const uint32_t no_mean = builder.add_floats(rows);
  builder.append(norm_moments(device_class, "rms", {rows, length}, epsilon), {0, no_mean, 3});
  builder.append(norm_apply(device_class, "rms", layer_view(rows, length)), {0, 1, 3, 2});
  return builder.finish();
}

Plan plan_rms_norm_grad(DeviceClass device_class, int64_t rows, int64_t length) {
  return plan_layer_grad(device_class, "rms", rows, length, 6, {0, 1, 2, 0, 3, 4, 5, 0});
}

}  // namespace ballast::kernels
