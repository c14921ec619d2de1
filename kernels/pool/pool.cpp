#include "kernels/kernels.h"
#include "kernels/plan/halide_runtime.h"
#include "kernels/plan/registers.h"
#include "kernels/plan/streaming.h"
#include "kernels/pool/pool_arguments.h"
#include "kernels/pool/pool_lanes.h"
#include "kernels/pool/pool_limits.h"
#include "kernels/pool/pool_strips.h"
#include "kernels/recipe/lanes.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace ballast::kernels {
namespace {

constexpr int64_t kPoolGroups = 16;  // work-groups, if there is enough to do

Shape x_shape(const PoolConfig& c) { return {c.planes, c.height, c.width}; }
Shape y_shape(const PoolConfig& c) { return {c.planes, c.out_h(), c.out_w()}; }

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
  return pool_numbers({c.kernel_h, c.kernel_w, c.stride_h, c.stride_w, c.top, c.left, c.dilation_h,
                       c.dilation_w, rows});
}

std::vector<HostArg> average_geometry(const PoolConfig& c, const Shape& result) {
  std::vector<HostArg> args = geometry(c, result);
  add_ends(args, c);
  return args;
}

void call(Recorder& recorder, DeviceClass device_class, const std::string& kernel,
          std::vector<HostArg> args, const std::vector<Operand>& operands) {
  args.insert(args.end(), operands.begin(), operands.end());
  recorder.call(kernel, device_class, args);
}

Operand f32(uint32_t slot, const Shape& shape) { return dense_operand(slot, DType::kF32, shape); }

constexpr int64_t kPairs = 8, kFewPairs = 4;  // windows of a step of pool_pairs

// Windows of 2 x 2 side by side, enough of them for vectors: see pool_pairs_generator.cpp.
bool is_pairs(DeviceClass device_class, const PoolConfig& c) {
  return device_class == DeviceClass::kCpu && c.kernel_h == 2 && c.kernel_w == 2 &&
         c.stride_h == 2 && c.stride_w == 2 && c.dilation_h == 1 && c.dilation_w == 1 &&
         !is_padded(c) && c.height % 2 == 0 && c.width % 2 == 0 && c.width >= 2 * kFewPairs;
}

// Rows of y, and rows of x in pairs.
Operand single_rows(uint32_t slot, const PoolConfig& c) {
  return dense_operand(slot, DType::kF32, {c.planes * c.out_h(), c.out_w()});
}
Operand row_pairs(uint32_t slot, const PoolConfig& c) {
  return dense_operand(slot, DType::kF32, {c.planes * c.out_h(), 2, c.width});
}

// One window that is the whole plane, see pool_plane_generator.cpp.
bool is_whole_plane(DeviceClass device_class, const PoolConfig& c) {
  constexpr int64_t kVector = 16;
  return device_class == DeviceClass::kCpu && c.kernel_h == c.height && c.kernel_w == c.width &&
         !is_padded(c) && c.height * c.width >= kVector && c.planes >= kVector;
}

// As many as are some work together.
int64_t planes_of_group(const PoolConfig& c) {
  constexpr int64_t kGroupElements = 32768;
  return std::clamp<int64_t>(kGroupElements / (c.height * c.width), 1,
                             ceil_div(c.planes, kPoolGroups));
}

Plan plan_plane_average(const PoolConfig& c) {
  constexpr int64_t kGroupElements = 32768, kVector = 16, kGroups = 8;
  const int64_t elements = c.height * c.width, steps = ceil_div(c.planes, kVector);
  const int64_t per_group =
      std::clamp<int64_t>(kGroupElements / (kVector * elements), 1, ceil_div(steps, kGroups));
  Recorder recorder;
  call(recorder, DeviceClass::kCpu, "avg_pool_plane",
       {checked_int32(per_group), 1.0f / static_cast<float>(elements)},
       {f32(0, {c.planes, elements}), f32(1, {c.planes})});
  return recorder.finish();
}

Plan plan_plane_average_grad(const PoolConfig& c) {
  const int64_t elements = c.height * c.width;
  Recorder recorder;
  call(recorder, DeviceClass::kCpu, "avg_pool_plane_grad",
       {checked_int32(planes_of_group(c)), 1.0f / static_cast<float>(elements)},
       {f32(0, {c.planes}), f32(1, {c.planes, elements})});
  return recorder.finish();
}

Plan plan_pairs(const std::string& name, const PoolConfig& c,
                const std::vector<Operand>& operands) {
  const std::string kernel = fmt::format("{}_{}", name, c.out_w() >= kPairs ? kPairs : kFewPairs);
  constexpr int64_t kGroupElements = 32768;
  const int64_t rows = c.planes * c.out_h();
  const int32_t rows_per_group = checked_int32(std::clamp<int64_t>(
      kGroupElements / (2 * c.width), 1, std::max<int64_t>(1, ceil_div(rows, kPoolGroups))));
  Recorder recorder;
  call(recorder, DeviceClass::kCpu, kernel, {rows_per_group}, operands);
  return recorder.finish();
}

// Vectors of windows of 3 x 3, see pool_threes_generator.cpp: how many lanes, 0 where they do not
// fit or planes are too few to share.
int64_t lanes_of_threes(DeviceClass device_class, const PoolConfig& c) {
  const bool is_near = (c.out_h() - 1) * c.stride_h - c.top + 2 <= c.height &&
                       (c.out_w() - 1) * c.stride_w - c.left + 2 <= c.width;
  if (device_class != DeviceClass::kCpu || c.kernel_h != 3 || c.kernel_w != 3 || c.stride_w > 2 ||
      c.stride_h != c.stride_w || c.out_h() < kPoolRows || c.planes < kPoolGroups ||
      c.dilation_h != 1 || c.dilation_w != 1 || c.top > 1 || c.left > 1 || !is_near) {
    return 0;
  }
  for (int64_t lanes : {16, 8}) {
    if (c.out_w() >= lanes && c.width >= c.stride_w * lanes) return lanes;
  }
  return 0;
}

// `result`: max or average.
Plan plan_threes(const std::string& result, const PoolConfig& c, int64_t lanes) {
  std::vector<HostArg> args = pool_numbers({c.top, c.left, planes_of_group(c)});
  if (result == "average") add_counts(args, c);
  Recorder recorder;
  call(recorder, DeviceClass::kCpu, fmt::format("pool_threes_{}_{}_{}", result, c.stride_w, lanes),
       std::move(args), {f32(0, x_shape(c)), f32(1, y_shape(c))});
  return recorder.finish();
}

// How far apart rows of windows are, for the gradients over such, with two around them.
int64_t pitch_of_threes(const PoolConfig& c) { return ceil_div(c.out_w() + 4, 16) * 16; }
int64_t lanes_of_threes_grad(DeviceClass device_class, const PoolConfig& c) {
  const bool fits = (c.out_h() + 4) * pitch_of_threes(c) <= kPoolCells;
  return fits ? lanes_of_threes(device_class, c) : 0;
}

// `op`: max, which takes x too, or avg.
Plan plan_threes_grad(const std::string& op, const PoolConfig& c, int64_t lanes,
                      const std::vector<Operand>& operands) {
  const int64_t start = c.width % 2 == 0 ? c.left : 2;
  std::vector<HostArg> args =
      pool_numbers({c.top, c.left, planes_of_group(c), pitch_of_threes(c), start});
  if (op == "avg") add_counts(args, c);
  Recorder recorder;
  recorder.set_streams(lanes == kLanes && should_stream(DeviceClass::kCpu, c.planes * c.height,
                                                        c.width, kStreamedBytes));
  call(recorder, DeviceClass::kCpu, fmt::format("{}_pool_threes_grad_{}_{}", op, c.stride_w, lanes),
       std::move(args), operands);
  return recorder.finish();
}

// How far apart padded rows are, for the kernels that go by rows (pool_rows_generator.cpp).
int64_t line_pitch(const PoolConfig& c) {
  const int64_t reach = (c.out_w() - 1) * c.stride_w + (c.kernel_w - 1) * c.dilation_w + 1;
  return ceil_div(std::max(reach, c.left + c.width), 2) * 2;
}
bool is_by_rows(DeviceClass device_class, const PoolConfig& c) {
  return device_class == DeviceClass::kCpu && c.width >= kPoolStep && line_pitch(c) <= kPoolLines;
}

// `result`: max, index or average; y in `slot`.
void record_rows(Recorder& recorder, const std::string& result, const PoolConfig& c, uint32_t x,
                 uint32_t y) {
  const int64_t out_h = c.out_h(), out_w = c.out_w(), pitch = line_pitch(c);
  // A divisor of out_h; a few rows where there are too few planes.
  const int64_t enough = ceil_div(kPoolGroups, c.planes);
  int64_t rows = std::max<int64_t>(1, std::min(kPoolLines / pitch, ceil_div(out_h, enough)));
  while (out_h % rows != 0) --rows;
  const int64_t planes = rows < out_h ? 1 : planes_of_group(c);
  std::vector<HostArg> args = geometry(c, y_shape(c));
  args.back() = checked_int32(pitch);
  args.emplace_back(checked_int32(planes));
  if (result == "average") add_counts(args, c);
  const bool is_wide = has_wide_registers() && std::min(c.width, out_w) >= kLanes;
  const std::string kernel = fmt::format("pool_rows_{}{}_{}", result, c.stride_w == 2 ? "_2" : "",
                                         is_wide ? kLanes : kPoolStep);
  const Operand out{y,
                    result == "index" ? DType::kI32 : DType::kF32,
                    {out_w, rows, out_h / rows, c.planes},
                    {1, out_w, rows * out_w, out_h * out_w},
                    {}};
  args.insert(args.end(), {f32(x, x_shape(c)), out});
  recorder.call(kernel, DeviceClass::kCpu, args);
}

// The gradients that go by rows, see pool_rows_grad_generator.cpp: how far apart rows of cells are.
int64_t pitch_of_cells(const PoolConfig& c) {
  const int64_t before = (c.kernel_w - 1) * c.dilation_w;
  return ceil_div(before + std::max(c.left + c.width, (c.out_w() - 1) * c.stride_w + 1), 16) * 16;
}
bool is_grad_by_rows(DeviceClass device_class, const PoolConfig& c) {
  return device_class == DeviceClass::kCpu && c.width >= kPoolStep &&
         c.out_h() * pitch_of_cells(c) <= kPoolCells;
}

// `op`: max, which has an index too, or avg.
void record_rows_grad(Recorder& recorder, const std::string& op, const PoolConfig& c,
                      const std::vector<Operand>& operands) {
  std::vector<HostArg> args = geometry(c, x_shape(c));
  args.back() = checked_int32(pitch_of_cells(c));
  args.emplace_back(checked_int32(planes_of_group(c)));
  if (op == "avg") add_counts(args, c);
  const int64_t lanes = c.width >= kLanes ? kLanes : kPoolStep;
  call(recorder, DeviceClass::kCpu, fmt::format("{}_pool_rows_grad_{}", op, lanes), std::move(args),
       operands);
}

}  // namespace

int64_t PoolConfig::out_h() const {
  return (height + top + bottom - (kernel_h - 1) * dilation_h - 1) / stride_h + 1;
}
int64_t PoolConfig::out_w() const {
  return (width + left + right - (kernel_w - 1) * dilation_w - 1) / stride_w + 1;
}

Plan plan_max_pool2d(DeviceClass device_class, const PoolConfig& c) {
  const Shape x = x_shape(c), y = y_shape(c);
  if (elements_of(y) == 0) return {};
  if (is_max_pool_strips(device_class, c)) return plan_max_pool_strips(c);
  if (is_pairs(device_class, c)) {
    return plan_pairs("max_pool_pairs", c, {row_pairs(0, c), single_rows(1, c)});
  }
  const bool is_separable = is_padded(c) && is_max_pool_by_lanes(device_class, c);
  if (is_pool_by_lanes(device_class, c) && !is_separable) return plan_pool_lanes("max", c);
  const int64_t lanes = lanes_of_threes(device_class, c);
  if (lanes != 0) return plan_threes("max", c, lanes);
  if (is_max_pool_by_lanes(device_class, c)) return plan_max_pool_lanes(c);
  Recorder recorder;
  if (is_by_rows(device_class, c)) {
    record_rows(recorder, "max", c, 0, 1);
  } else {
    call(recorder, device_class, "max_pool_value", geometry(c, y), {f32(0, x), f32(1, y)});
  }
  return recorder.finish();
}

Plan plan_max_pool2d_grad(DeviceClass device_class, const PoolConfig& c) {
  const Shape x = x_shape(c), y = y_shape(c);
  if (elements_of(x) == 0) return {};
  if (is_max_pool_grad_strips(device_class, c)) return plan_max_pool_grad_strips(c);
  if (is_pairs(device_class, c)) {
    return plan_pairs("max_pool_pairs_grad", c,
                      {single_rows(0, c), row_pairs(1, c), row_pairs(2, c)});
  }
  if (is_pool_by_lanes(device_class, c)) return plan_pool_lanes_grad("max", c);
  const int64_t lanes = lanes_of_threes_grad(device_class, c);
  if (lanes != 0) return plan_threes_grad("max", c, lanes, {f32(0, y), f32(1, x), f32(2, x)});
  Recorder recorder;
  const Operand index = dense_operand(3, DType::kI32, y);
  const size_t workspace = TensorType{DType::kI32, y}.bytes();
  if (is_by_rows(device_class, c)) {
    record_rows(recorder, "index", c, 1, 3);
  } else {
    call(recorder, device_class, "max_pool_index", geometry(c, y), {f32(1, x), index});
  }
  if (is_grad_by_rows(device_class, c)) {
    record_rows_grad(recorder, "max", c, {f32(0, y), index, f32(2, x)});
  } else {
    call(recorder, device_class, "max_pool_grad", geometry(c, x), {f32(0, y), index, f32(2, x)});
  }
  return recorder.finish(workspace);
}

Plan plan_max_pool2d_grad_grad(DeviceClass device_class, const PoolConfig& c) {
  const Shape x = x_shape(c), y = y_shape(c);
  if (elements_of(y) == 0) return {};
  Recorder recorder;
  call(recorder, device_class, "max_pool_other", geometry(c, y),
       {f32(1, x), f32(0, {c.planes, c.height * c.width}), f32(2, y)});
  return recorder.finish();
}

Plan plan_avg_pool2d(DeviceClass device_class, const PoolConfig& c) {
  const Shape x = x_shape(c), y = y_shape(c);
  if (elements_of(y) == 0) return {};
  if (is_whole_plane(device_class, c)) return plan_plane_average(c);
  if (is_pairs(device_class, c)) {
    return plan_pairs("avg_pool_pairs", c, {row_pairs(0, c), single_rows(1, c)});
  }
  if (is_pool_by_lanes(device_class, c)) return plan_pool_lanes("avg", c);
  const int64_t lanes = lanes_of_threes(device_class, c);
  if (lanes != 0) return plan_threes("average", c, lanes);
  Recorder recorder;
  if (is_by_rows(device_class, c)) {
    record_rows(recorder, "average", c, 0, 1);
  } else {
    call(recorder, device_class, "avg_pool", average_geometry(c, y), {f32(0, x), f32(1, y)});
  }
  return recorder.finish();
}

Plan plan_avg_pool2d_grad(DeviceClass device_class, const PoolConfig& c) {
  const Shape x = x_shape(c), y = y_shape(c);
  if (elements_of(x) == 0) return {};
  if (is_avg_pool_grad_strips(device_class, c)) return plan_avg_pool_grad_strips(c);
  if (is_whole_plane(device_class, c)) return plan_plane_average_grad(c);
  if (is_pairs(device_class, c)) {
    return plan_pairs("avg_pool_pairs_grad", c, {single_rows(0, c), row_pairs(1, c)});
  }
  if (is_pool_by_lanes(device_class, c)) return plan_pool_lanes_grad("avg", c);
  const int64_t lanes = lanes_of_threes_grad(device_class, c);
  if (lanes != 0) return plan_threes_grad("avg", c, lanes, {f32(0, y), f32(1, x)});
  Recorder recorder;
  if (is_grad_by_rows(device_class, c)) {
    record_rows_grad(recorder, "avg", c, {f32(0, y), f32(1, x)});
  } else {
    call(recorder, device_class, "avg_pool_grad", average_geometry(c, x), {f32(0, y), f32(1, x)});
  }
  return recorder.finish();
}

}  // namespace ballast::kernels
