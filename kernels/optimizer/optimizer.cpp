#include "kernels/kernels.h"
#include "kernels/optimizer/step_rules.h"
#include "kernels/plan/halide_runtime.h"
#include "kernels/plan/merge_launches.h"
#include "kernels/recipe/lanes.h"

#include <algorithm>

namespace ballast::kernels {
namespace {

Operand row(uint32_t slot, int64_t n) { return {slot, DType::kF32, {n}, {1}, {}}; }
Operand scalar(uint32_t slot, DType dtype = DType::kF32) { return {slot, dtype, {}, {}, {}}; }

// How many vectors a work-group steps over: some 10 us of work at least, and enough groups
// for all cores.
int32_t vectors_per_group(int64_t n) {
  return checked_int32(std::clamp<int64_t>(n / kLanes / 16, 512, 2048));
}

constexpr int64_t kChunk = 16384;  // of a sum

int64_t chunk_count(int64_t n) { return ceil_div(n, kChunk); }

Plan plan_sums(DeviceClass device_class, const std::string& kind, const std::vector<int64_t>& sizes,
               DType result) {
  const std::string chunks = "optimizer_" + kind + "_chunks";
  const std::string finish = "optimizer_" + kind + "_finish";
  const auto out = static_cast<uint32_t>(sizes.size());
  int64_t total = 0;
  for (int64_t n : sizes) total += chunk_count(n);
  Recorder recorder;
  int64_t first = 0;
  for (uint32_t slot = 0; slot < out; ++slot) {
    if (sizes[slot] == 0) continue;
    recorder.call(
        chunks, device_class,
        {row(slot, sizes[slot]), checked_int32(kChunk), checked_int32(first), row(out + 1, total)});
    first += chunk_count(sizes[slot]);
  }
  std::vector<device::Launch> launches = merge_launches(recorder.finish().launches);
  recorder.call(finish, device_class,
                {row(total > 0 ? out + 1 : out, total), Operand{out, result, {1}, {1}, {}}});
  launches.push_back(recorder.finish().launches.at(0));
  return {std::move(launches), static_cast<uint64_t>(total) * sizeof(float)};
}

}  // namespace

Plan plan_step(DeviceClass device_class, const std::string& rule,
               const std::vector<int64_t>& sizes) {
  const StepRule& layout = step_rule(rule);
  const uint32_t ins = 1 + layout.states + (layout.has_gradient ? 1 : 0), outs = 1 + layout.states;
  const auto count = static_cast<uint32_t>(sizes.size());
  const uint32_t scalars = ins * count, outputs = scalars + layout.scalars;
  const std::string kernel = "optimizer_" + rule;
  Recorder recorder;
  for (uint32_t t = 0; t < count; ++t) {
    const int64_t n = sizes[t];
    if (n == 0) continue;
    std::vector<HostArg> args = {row(ins * t, n), vectors_per_group(n)};
    for (uint32_t k = 1; k < ins; ++k) args.push_back(row(ins * t + k, n));
    for (uint32_t k = 0; k < layout.scalars; ++k) args.push_back(scalar(scalars + k));
    for (uint32_t k = 0; k < outs; ++k) args.push_back(row(outputs + outs * t + k, n));
    recorder.call(kernel, device_class, args);
  }
  return {merge_launches(recorder.finish().launches), 0};
}

Plan plan_global_norm(DeviceClass device_class, const std::vector<int64_t>& sizes) {
  return plan_sums(device_class, "square", sizes, DType::kF32);
}

Plan plan_all_finite(DeviceClass device_class, const std::vector<int64_t>& sizes) {
  return plan_sums(device_class, "finite", sizes, DType::kBool);
}

}  // namespace ballast::kernels
