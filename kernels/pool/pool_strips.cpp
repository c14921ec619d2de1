#include "kernels/pool/pool_strips.h"

#include "kernels/kernels.h"
#include "kernels/plan/halide_runtime.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace ballast::kernels {
namespace {

// Windows and how far apart they are, of which there are kernels.
using Windows = std::vector<std::pair<int64_t, int64_t>>;

bool is_one_of(const Windows& windows, DeviceClass device_class, const PoolConfig& c) {
  const bool is_square = c.kernel_h == c.kernel_w && c.stride_h == c.stride_w;
  return device_class == DeviceClass::kGpu && is_square && c.dilation_h == 1 && c.dilation_w == 1 &&
         c.planes * c.height * c.width > 0 &&
         std::count(windows.begin(), windows.end(), std::pair{c.kernel_h, c.stride_h}) > 0;
}

Operand floats(uint32_t slot, int64_t count) { return dense_operand(slot, DType::kF32, {count}); }
int64_t pixels(const PoolConfig& c) { return c.planes * c.height * c.width; }

void call(Recorder& recorder, const std::string& name, const PoolConfig& c,
          const std::vector<HostArg>& args) {
  recorder.call(fmt::format("{}_{}_{}", name, c.kernel_h, c.stride_h), DeviceClass::kGpu, args);
}

// `inputs`: dy, then x of a maximum; dx in the slot after them.
Plan plan_grad(const std::string& name, const PoolConfig& c, const std::vector<HostArg>& inputs) {
  std::vector<HostArg> args;
  for (const int64_t value :
       {c.top, c.left, c.bottom, c.right, int64_t{c.counts_padding}, c.out_w(), c.out_h()}) {
    args.emplace_back(checked_int32(value));
  }
  args.insert(args.end(), inputs.begin(), inputs.end());
  args.emplace_back(dense_operand(static_cast<uint32_t>(inputs.size()), DType::kF32,
                                  {c.planes, c.height, c.width}));
  Recorder recorder(kNoAliases);
  call(recorder, name, c, args);
  return recorder.finish();
}

HostArg dy_of(const PoolConfig& c) { return floats(0, c.planes * c.out_h() * c.out_w()); }

}  // namespace

bool is_max_pool_strips(DeviceClass device_class, const PoolConfig& c) {
  return is_one_of({{3, 1}, {3, 2}, {5, 1}}, device_class, c);
}
bool is_max_pool_grad_strips(DeviceClass device_class, const PoolConfig& c) {
  return is_one_of({{2, 2}, {3, 1}, {3, 2}}, device_class, c) && c.out_h() * c.out_w() > 0;
}
bool is_avg_pool_grad_strips(DeviceClass device_class, const PoolConfig& c) {
  return is_one_of({{2, 2}, {3, 2}}, device_class, c) && c.out_h() * c.out_w() > 0;
}

Plan plan_max_pool_strips(const PoolConfig& c) {
  Recorder recorder(kNoAliases);
  call(
      recorder, "max_pool_strips", c,
      {checked_int32(c.top), checked_int32(c.left), checked_int32(c.width), checked_int32(c.height),
       floats(0, pixels(c)), dense_operand(1, DType::kF32, {c.planes, c.out_h(), c.out_w()})});
  return recorder.finish();
}

Plan plan_max_pool_grad_strips(const PoolConfig& c) {
  return plan_grad("max_pool_strips_grad", c, {dy_of(c), floats(1, pixels(c))});
}

Plan plan_avg_pool_grad_strips(const PoolConfig& c) {
  return plan_grad("avg_pool_strips_grad", c, {dy_of(c)});
}

}  // namespace ballast::kernels
