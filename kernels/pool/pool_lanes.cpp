#include "kernels/pool/pool_lanes.h"

#include "kernels/kernels.h"
#include "kernels/plan/halide_runtime.h"
#include "kernels/pool/pool_arguments.h"
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

// Whether planes of x, or of windows, are less than a vector.
bool has_few_pixels(const PoolConfig& c) { return c.height * c.width < kLanes; }
bool has_few_windows(const PoolConfig& c) { return c.out_h() * c.out_w() < kLanes; }

// `op`: max or avg; it takes planes of y, of x, or of both, in the order of its operands.
Plan plan_lanes(const std::string& op, bool is_grad, const PoolConfig& c,
                const std::vector<Operand>& operands) {
  std::vector<HostArg> args =
      pool_numbers({c.kernel_h, c.kernel_w, c.stride_h, c.stride_w, c.dilation_h, c.dilation_w,
                    c.top, c.left, c.width, c.height, c.out_w(), c.out_h()});
  if (op == "avg") add_counts(args, c);
  args.insert(args.end(), operands.begin(), operands.end());
  const char* few = has_few_pixels(c) ? "_few" : has_few_windows(c) ? "_few_windows" : "";
  Recorder recorder;
  recorder.call(op + "_pool_lanes" + few + (is_grad ? "_grad" : ""), DeviceClass::kCpu, args);
  return recorder.finish();
}

}  // namespace

bool is_pool_by_lanes(DeviceClass device_class, const PoolConfig& c) {
  const int64_t windows = c.out_h() * c.out_w(), pixels = c.height * c.width;
  return device_class == DeviceClass::kCpu && std::min(c.width, c.out_w()) < kPoolStep &&
         c.planes >= kLanes && (!has_few_pixels(c) || has_few_windows(c)) &&
         std::max(windows, pixels) <= kPoolPlaces;
}

Plan plan_pool_lanes(const std::string& op, const PoolConfig& c) {
  return plan_lanes(
      op, false, c,
      {plane_pixels(0, c, c.height * c.width), result_planes(1, c, c.out_h() * c.out_w())});
}

Plan plan_pool_lanes_grad(const std::string& op, const PoolConfig& c) {
  const int64_t pixels = c.height * c.width;
  std::vector<Operand> operands = {plane_pixels(0, c, c.out_h() * c.out_w())};
  if (op == "max") operands.push_back(plane_pixels(1, c, pixels));
  operands.push_back(result_planes(op == "max" ? 2 : 1, c, pixels));
  return plan_lanes(op, true, c, operands);
}

bool is_max_pool_by_lanes(DeviceClass device_class, const PoolConfig& c) {
  const PaddedPlane plane = padded_plane(c);
  return device_class == DeviceClass::kCpu && c.planes >= kLanes && c.height * c.width >= kLanes &&
         c.out_h() * c.out_w() >= kLanes &&
         plane.width * std::max(plane.height, c.out_h()) <= kPoolPlaces;
}

Plan plan_max_pool_lanes(const PoolConfig& c) {
  const PaddedPlane plane = padded_plane(c);
  std::vector<HostArg> args = pool_numbers(
      {c.kernel_h, c.kernel_w, c.stride_h, c.stride_w, c.dilation_h, c.dilation_w, c.width,
       c.out_w(), c.out_h(), c.height, c.top, c.left, plane.width, plane.height});
  args.emplace_back(plane_pixels(0, c, c.height * c.width));
  args.emplace_back(result_planes(1, c, c.out_h() * c.out_w()));
  Recorder recorder;
  recorder.call("max_pool_lanes_any", DeviceClass::kCpu, args);
  return recorder.finish();
}

}  // namespace ballast::kernels
