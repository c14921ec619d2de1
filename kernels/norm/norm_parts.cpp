#include "kernels/norm/norm_parts.h"

#include "kernels/kernels.h"
#include "kernels/norm/norm_limits.h"
#include "kernels/pointwise/loops.h"
#include "kernels/reduce/axis.h"

namespace ballast::kernels {
namespace {

enum class Follows { kTensor, kStatistic, kParameter };

// Runs an elementwise kernel on `inputs` and one output: its scalars, then its operands.
Plan elementwise(DeviceClass device_class, const std::string& kernel, const NormView& view,
                 const std::vector<Follows>& inputs, const std::vector<HostArg>& scalars) {
  const std::vector<int64_t> dense = broadcast_strides(kernel, view.shape, view.shape);
  std::vector<std::vector<int64_t>> strides;
  for (Follows follows : inputs) {
    strides.push_back(follows == Follows::kTensor      ? dense
                      : follows == Follows::kStatistic ? view.statistic
                                                       : view.parameter);
  }
  strides.push_back(dense);
  Loops loops = make_loops(device_class, view.shape, strides);
  while (loops.extents.size() < kNormLoops) {
    for (auto& s : loops.strides) s.push_back(loops.extents.back() * s.back());
    loops.extents.push_back(1);
  }
  const Chunks chunks = choose_chunks(device_class, loops);
  std::vector<HostArg> args = {chunks.x, chunks.y};
  args.insert(args.end(), scalars.begin(), scalars.end());
  for (uint32_t slot = 0; slot <= inputs.size(); ++slot) {
    args.push_back(loops.operand(slot, slot, DType::kF32));
  }
  Recorder recorder(kNoAliases);
  recorder.call(kernel, device_class, args);
  return recorder.finish();
}

}  // namespace

Plan norm_moments(DeviceClass device_class, const std::string& kind, const Shape& lines,
                  float epsilon) {
  const AxisView view(device_class, lines, 1);
  const std::string kernel = fmt::format("norm_moments_{}_{}", kind, view.layout(kLongLine));
  Recorder recorder(kNoAliases);
  recorder.call(
      kernel, device_class,
      {view.tensor(0), epsilon, view.rows_per_group(), view.per_line(1), view.per_line(2)});
  return recorder.finish();
}

Plan norm_apply(DeviceClass device_class, const std::string& kind, const NormView& view,
                float epsilon) {
  using F = Follows;
  if (kind == "rms") {
    return elementwise(device_class, "norm_apply_rms", view,
                       {F::kTensor, F::kParameter, F::kStatistic}, {epsilon});
  }
  return elementwise(device_class, "norm_apply_" + kind, view,
                     {F::kTensor, F::kParameter, F::kParameter, F::kStatistic, F::kStatistic},
                     {epsilon});
}

Plan norm_sums(DeviceClass device_class, const std::string& kind, const Shape& lines) {
  const AxisView view(device_class, lines, 1);
  const std::string kernel = fmt::format("norm_sums_{}_{}", kind, view.layout(kLongLine));
  std::vector<HostArg> args = {view.tensor(0), view.tensor(1), view.per_line(2),
                               view.rows_per_group()};
  uint32_t slot = 3;
  if (kind != "batch") args.push_back(Operand{slot++, DType::kF32, {view.length()}, {1}, {}});
  if (kind != "rms") args.push_back(view.per_line(slot++));
  args.push_back(view.per_line(slot++));
  if (kind != "rms") args.push_back(view.per_line(slot++));
  Recorder recorder(kNoAliases);
  recorder.call(kernel, device_class, args);
  return recorder.finish();
}

Plan norm_channel_sums(int64_t lines, int64_t length, int64_t each, int64_t count) {
  constexpr DeviceClass kGpu = DeviceClass::kGpu;
  const AxisView view(kGpu, {lines, length}, 1), statistics(kGpu, {count, length}, 1);
  const std::string kernel = fmt::format("norm_sums_channels_{}", view.layout(kLongLine));
  Recorder recorder(kNoAliases);
  recorder.call(kernel, kGpu,
                {view.tensor(0), view.tensor(1), statistics.per_line(2), view.rows_per_group(),
                 statistics.per_line(3), checked_int32(each), checked_int32(count),
                 view.per_line(4), view.per_line(5)});
  return recorder.finish();
}

Plan norm_dx(DeviceClass device_class, const std::string& kind, const NormView& view,
             int64_t count) {
  using F = Follows;
  std::vector<F> inputs = {F::kTensor, F::kTensor, F::kParameter, F::kStatistic, F::kStatistic};
  if (kind != "rms") inputs.insert(inputs.end(), 2, F::kStatistic);
  return elementwise(device_class, "norm_dx_" + kind, view, inputs, {static_cast<float>(count)});
}

Plan norm_sum_lines(DeviceClass device_class, int64_t count, int64_t length) {
  constexpr DType kF32 = DType::kF32;
  return plan_reduce(device_class, "sum", {kF32, {count, length}}, {0}, {kF32, {length}});
}

Plan norm_sum_two_lines(int64_t count, int64_t length, bool is_weighted) {
  const auto row = [&](uint32_t slot) { return dense_operand(slot, DType::kF32, {length}); };
  std::vector<HostArg> args = {dense_operand(0, DType::kF32, {count, length}),
                               dense_operand(1, DType::kF32, {count, length})};
  const uint32_t inputs = is_weighted ? 3 : 2, outputs = is_weighted ? 4 : 2;
  for (uint32_t slot = 2; slot < inputs + outputs; ++slot) args.emplace_back(row(slot));
  Recorder recorder(kNoAliases);
  recorder.call(is_weighted ? "norm_line_sums_weighted" : "norm_line_sums", DeviceClass::kGpu,
                args);
  return recorder.finish();
}

Plan norm_group_sums(int64_t batch, int64_t groups, int64_t each) {
  const auto dense = [](uint32_t slot, const Shape& shape) {
    return dense_operand(slot, DType::kF32, shape);
  };
  Recorder recorder(kNoAliases);
  recorder.call("norm_group_sums", DeviceClass::kGpu,
                {dense(0, {batch, groups, each}), dense(1, {batch, groups, each}),
                 dense(2, {groups, each}), dense(3, {batch, groups}), dense(4, {batch, groups})});
  return recorder.finish();
}

}  // namespace ballast::kernels
