#include "kernels/pool/pool_lanes.h"

#include "kernels/kernels.h"
#include "kernels/plan/halide_runtime.h"
#include "kernels/pool/pool_limits.h"
#include "kernels/recipe/lanes.h"

#include <algorithm>
#include <string>
#include <vector>

namespace ballast::kernels {
namespace {

Operand plane_pixels(uint32_t slot, const PoolConfig& c, int64_t pixels) {
  return {slot, DType::kF32, {pixels, c.planes, 1, 1}, {1, pixels, 0, 0}, {}};
}
Operand result_planes(uint32_t slot, const PoolConfig& c, int64_t elements) {
  return dense_operand(slot, DType::kF32, {c.planes, elements});
}

// What the windows see of a plane, with what is padded.
struct PaddedPlane {
  int64_t width, height;
};
PaddedPlane padded_plane(const PoolConfig& c) {
  const auto reach = [](int64_t windows, int64_t stride, int64_t kernel, int64_t dilation) {
    return (windows - 1) * stride + (kernel - 1) * dilation + 1;
  };
  return {std::max(c.left + c.width, reach(c.out_w(), c.stride_w, c.kernel_w, c.dilation_w)),
          std::max(c.top + c.height, reach(c.out_h(), c.stride_h, c.kernel_h, c.dilation_h))};
}

std::vector<HostArg> lanes_geometry(const PoolConfig& c) {
  std::vector<HostArg> args;
  for (int64_t value : {c.kernel_h, c.kernel_w, c.stride_h, c.stride_w, c.dilation_h, c.dilation_w,
                        c.width, c.out_w(), c.out_h()}) {
    args.emplace_back(checked_int32(value));
  }
  return args;
}

// `kernel`: takes planes of x, of y, or of both, in the order of its operands; the result is like
// x or like y.
Plan plan_lanes(const std::string& kernel, const PoolConfig& c, const std::vector<Operand>& inputs,
                const Operand& result) {
  std::vector<HostArg> args = lanes_geometry(c);
  args.emplace_back(1.0f / static_cast<float>(c.kernel_h * c.kernel_w));
  args.insert(args.end(), inputs.begin(), inputs.end());
  args.emplace_back(result);
  Recorder recorder;
  recorder.call(kernel, DeviceClass::kCpu, args);
  return recorder.finish();
}

}  // namespace

bool is_pool_by_lanes(DeviceClass device_class, const PoolConfig& c) {
  const int64_t windows = c.out_h() * c.out_w(), pixels = c.height * c.width;
  return device_class == DeviceClass::kCpu && c.out_w() < kPoolStep &&
         c.top + c.bottom + c.left + c.right == 0 && c.planes >= kLanes && windows >= kLanes &&
         pixels <= kPoolPlaces;
}

Plan plan_pool_lanes(const std::string& op, const PoolConfig& c) {
  const int64_t pixels = c.height * c.width, windows = c.out_h() * c.out_w();
  return plan_lanes(op + "_pool_lanes", c, {plane_pixels(0, c, pixels)},
                    result_planes(1, c, windows));
}

Plan plan_pool_lanes_grad(const std::string& op, const PoolConfig& c) {
  const int64_t pixels = c.height * c.width, windows = c.out_h() * c.out_w();
  std::vector<Operand> inputs = {plane_pixels(0, c, windows)};
  if (op == "max") inputs.push_back(plane_pixels(1, c, pixels));
  return plan_lanes(op + "_pool_lanes_grad", c, inputs,
                    result_planes(op == "max" ? 2 : 1, c, pixels));
}

bool is_max_pool_by_lanes(DeviceClass device_class, const PoolConfig& c) {
  const PaddedPlane plane = padded_plane(c);
  return device_class == DeviceClass::kCpu && c.planes >= kLanes && c.height * c.width >= kLanes &&
         c.out_h() * c.out_w() >= kLanes &&
         plane.width * std::max(plane.height, c.out_h()) <= kPoolPlaces;
}

Plan plan_max_pool_lanes(const PoolConfig& c) {
  std::vector<HostArg> args = lanes_geometry(c);
  const PaddedPlane plane = padded_plane(c);
  for (int64_t value : {c.height, c.top, c.left, plane.width, plane.height}) {
    args.emplace_back(checked_int32(value));
  }
  args.emplace_back(plane_pixels(0, c, c.height * c.width));
  args.emplace_back(result_planes(1, c, c.out_h() * c.out_w()));
  Recorder recorder;
  recorder.call("max_pool_lanes_any", DeviceClass::kCpu, args);
  return recorder.finish();
}

}  // namespace ballast::kernels
