#include "kernels/halide_runtime.h"
#include "kernels/kernels.h"
#include "kernels/pointwise/loops.h"

namespace ballast::kernels {
namespace {

// A step over n elements: `dense` tensors, then `scalars`, to `outputs` tensors; all f32.
Plan plan_step(DeviceClass device_class, const std::string& kernel, int64_t n, uint32_t dense,
               uint32_t scalars, uint32_t outputs) {
  if (n == 0) return {};
  std::vector<std::vector<int64_t>> strides(dense, {1});
  strides.resize(dense + scalars, {0});
  strides.resize(dense + scalars + outputs, {1});
  const Loops loops = make_loops(device_class, {n}, strides);
  std::vector<HostArg> args;
  for (uint32_t slot = 0; slot < strides.size(); ++slot) {
    args.push_back(loops.operand(slot, slot, DType::kF32));
  }
  const Chunks chunks = choose_chunks(device_class, loops);
  args.insert(args.begin() + dense + scalars, {chunks.x, chunks.y});
  Recorder recorder;
  recorder.call(aot_kernel(kernel, device_class), kernel, args);
  return recorder.finish();
}

}  // namespace

Plan plan_sgd(DeviceClass device_class, int64_t n) {
  return plan_step(device_class, "sgd_f32", n, 2, 1, 1);
}

Plan plan_momentum(DeviceClass device_class, int64_t n, bool use_nesterov) {
  return plan_step(device_class, use_nesterov ? "momentum_nesterov_f32" : "momentum_f32", n, 3, 2,
                   2);
}

}  // namespace ballast::kernels
