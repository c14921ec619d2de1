#include "kernels/halide_runtime.h"
#include "kernels/kernels.h"

#include <algorithm>
#include <string>
#include <vector>

namespace ballast::kernels {
namespace {

Shape x_shape(const PoolConfig& c) { return {c.planes, c.height, c.width}; }
Shape y_shape(const PoolConfig& c) { return {c.planes, c.out_h(), c.out_w()}; }
bool is_empty(const Shape& shape) {
  return std::find(shape.begin(), shape.end(), 0) != shape.end();
}

// The parameters that all kernels begin with; `result` is what they fill.
std::vector<HostArg> geometry(const PoolConfig& c, const Shape& result) {
  constexpr int64_t kPositionLimit = int64_t{1} << 21;
  const int64_t reach = std::max(c.height + c.top + c.bottom, c.width + c.left + c.right);
  if (reach >= kPositionLimit) {
    device::fail(device::Code::kUnimplemented,
                 "[pool] a padded plane is {} long, expected below {}", reach, kPositionLimit);
  }
  // Some 10 us of work for a group.
  constexpr int64_t kReadsPerGroup = 16384;
  const int64_t reads = std::max<int64_t>(1, result[2] * c.kernel_h * c.kernel_w);
  const int64_t rows =
      std::clamp<int64_t>(kReadsPerGroup / reads, 1, std::max<int64_t>(1, result[1]));
  std::vector<HostArg> args;
  for (int64_t value : {c.kernel_h, c.kernel_w, c.stride_h, c.stride_w, c.top, c.left, c.dilation_h,
                        c.dilation_w, rows}) {
    args.emplace_back(static_cast<int32_t>(value));
  }
  return args;
}

std::vector<HostArg> average_geometry(const PoolConfig& c, const Shape& result) {
  std::vector<HostArg> args = geometry(c, result);
  args.emplace_back(static_cast<int32_t>(c.bottom));
  args.emplace_back(static_cast<int32_t>(c.right));
  args.emplace_back(int32_t{c.counts_padding});
  return args;
}

void call(Recorder& recorder, DeviceClass device_class, const std::string& kernel,
          std::vector<HostArg> args, const std::vector<Operand>& operands) {
  args.insert(args.end(), operands.begin(), operands.end());
  recorder.call(aot_kernel(kernel, device_class), kernel, args);
}

Operand f32(uint32_t slot, const Shape& shape) { return dense_operand(slot, DType::kF32, shape); }

}  // namespace

int64_t PoolConfig::out_h() const {
  return (height + top + bottom - (kernel_h - 1) * dilation_h - 1) / stride_h + 1;
}
int64_t PoolConfig::out_w() const {
  return (width + left + right - (kernel_w - 1) * dilation_w - 1) / stride_w + 1;
}

Plan plan_max_pool2d(DeviceClass device_class, const PoolConfig& c) {
  const Shape x = x_shape(c), y = y_shape(c);
  if (is_empty(y)) return {};
  Recorder recorder;
  call(recorder, device_class, "max_pool_value", geometry(c, y), {f32(0, x), f32(1, y)});
  return recorder.finish();
}

Plan plan_max_pool2d_grad(DeviceClass device_class, const PoolConfig& c) {
  const Shape x = x_shape(c), y = y_shape(c);
  if (is_empty(x)) return {};
  const Operand index = dense_operand(3, DType::kI32, y);
  Recorder recorder;
  call(recorder, device_class, "max_pool_index", geometry(c, y), {f32(1, x), index});
  call(recorder, device_class, "max_pool_grad", geometry(c, x), {f32(0, y), index, f32(2, x)});
  return recorder.finish(TensorType{DType::kI32, y}.bytes());
}

Plan plan_max_pool2d_grad_grad(DeviceClass device_class, const PoolConfig& c) {
  const Shape x = x_shape(c), y = y_shape(c);
  if (is_empty(y)) return {};
  Recorder recorder;
  call(recorder, device_class, "max_pool_other", geometry(c, y),
       {f32(1, x), f32(0, {c.planes, c.height * c.width}), f32(2, y)});
  return recorder.finish();
}

Plan plan_avg_pool2d(DeviceClass device_class, const PoolConfig& c) {
  const Shape x = x_shape(c), y = y_shape(c);
  if (is_empty(y)) return {};
  Recorder recorder;
  call(recorder, device_class, "avg_pool", average_geometry(c, y), {f32(0, x), f32(1, y)});
  return recorder.finish();
}

Plan plan_avg_pool2d_grad(DeviceClass device_class, const PoolConfig& c) {
  const Shape x = x_shape(c), y = y_shape(c);
  if (is_empty(x)) return {};
  Recorder recorder;
  call(recorder, device_class, "avg_pool_grad", average_geometry(c, x), {f32(0, y), f32(1, x)});
  return recorder.finish();
}

}  // namespace ballast::kernels
