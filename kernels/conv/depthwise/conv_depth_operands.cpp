#include "kernels/conv/depthwise/conv_depth_operands.h"

#include <algorithm>

namespace ballast::kernels::depth {

bool are_all(int64_t wanted, std::initializer_list<int64_t> values) {
  return std::all_of(values.begin(), values.end(), [&](int64_t v) { return v == wanted; });
}

bool is_step(const ConvConfig& c, int64_t window) {
  return are_all(window, {c.kernel_h, c.kernel_w}) &&
         are_all(1, {c.stride_h, c.stride_w, c.dilation_h, c.dilation_w});
}

bool is_same(const ConvConfig& c, int64_t window) {
  return is_step(c, window) && are_all(window / 2, {c.top, c.left, c.bottom, c.right});
}

bool has_one_channel(const ConvConfig& c) { return c.in_channels == c.groups; }

bool is_two_apart(const ConvConfig& c, int64_t window) {
  return c.in_channels == c.groups && c.out_channels == c.groups &&
         are_all(window, {c.kernel_h, c.kernel_w}) && are_all(2, {c.stride_h, c.stride_w}) &&
         are_all(1, {c.dilation_h, c.dilation_w});
}

bool halves_planes(const ConvConfig& c, int64_t window) {
  return is_two_apart(c, window) && are_all(window / 2, {c.top, c.left}) &&
         c.height == 2 * c.out_h() && c.width == 2 * c.out_w();
}

int64_t planes_of_group(const ConvConfig& c, int64_t blocks) {
  constexpr int64_t kMost = 64, kGroups = 32;
  const int64_t all = c.batch * c.groups * blocks;
  int64_t planes = kMost;
  while (planes > 1 && (c.groups % planes != 0 || all / planes < kGroups)) --planes;
  return planes;
}

Operand flat_planes(uint32_t slot, const ConvConfig& c) {
  return dense_operand(slot, DType::kF32, {c.batch, c.groups, c.height * c.width});
}

Operand flat_results(uint32_t slot, const ConvConfig& c) {
  return dense_operand(slot, DType::kF32, {c.batch, c.groups, c.out_h() * c.out_w()});
}

Operand channel_planes(uint32_t slot, const ConvConfig& c) {
  return dense_operand(slot, DType::kF32,
                       {c.batch, c.groups, c.out_channels / c.groups, c.height * c.width});
}

Operand weights(uint32_t slot, const ConvConfig& c) {
  return dense_operand(slot, DType::kF32,
                       {c.groups, c.out_channels / c.groups, c.kernel_h, c.kernel_w});
}

Operand windows(uint32_t slot, const ConvConfig& c) {
  return dense_operand(slot, DType::kF32, {c.groups, c.kernel_h, c.kernel_w});
}

EpilogueOperands terms_of(const ConvConfig& c, const ConvEpilogue& e) {
  return {e, {c.out_channels / c.groups, c.groups}};
}

void call_with_epilogue(Recorder& recorder, const std::string& kernel, std::vector<HostArg> args,
                        const EpilogueOperands& terms, const Operand& out) {
  terms.append_to(args, out);
  args.push_back(out);
  recorder.call(kernel, DeviceClass::kCpu, args);
}

}  // namespace ballast::kernels::depth
