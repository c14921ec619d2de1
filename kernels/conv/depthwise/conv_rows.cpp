#include "kernels/conv/depthwise/conv_rows.h"

#include "kernels/conv/conv_arguments.h"
#include "kernels/conv/conv_operands.h"
#include "kernels/recipe/lanes.h"

#include <fmt/format.h>

#include <algorithm>

namespace ballast::kernels {
namespace {

// Dense [batch, groups * channels, height, width] as (x, y, channel, group, n).
Operand dense_planes(uint32_t slot, const ConvConfig& c, int64_t channels, int64_t height,
                     int64_t width) {
  const int64_t plane = height * width;
  return {slot,
          DType::kF32,
          {width, height, channels, c.groups, c.batch},
          {1, width, plane, channels * plane, c.groups * channels * plane},
          {}};
}

// Padded planes in the same order.
Operand padded_planes(const PaddedPlanes& in, const ConvConfig& c, int64_t channels) {
  return {in.slot,
          DType::kF32,
          {in.pitch, in.plane / std::max<int64_t>(1, in.pitch), channels, c.groups, c.batch},
          {1, in.pitch, in.plane, channels * in.plane, in.image},
          {}};
}

int64_t row_blocks_per_group(int64_t height, int64_t width, int64_t taps) {
  constexpr int64_t kGroupProducts = 1 << 18;
  return std::clamp<int64_t>(kGroupProducts / (kConvRows * width * taps + 1), 1, height);
}

// The kernel of `name` for windows that it knows of, where they suit it.
std::string kernel_of(const std::string& name, const ConvConfig& c, bool suits) {
  const bool is_dense = c.kernel_h == c.kernel_w && (c.kernel_w == 3 || c.kernel_w == 5) &&
                        c.dilation_h == 1 && c.dilation_w == 1;
  return is_dense && suits ? fmt::format("{}_{}x{}", name, c.kernel_w, c.kernel_h) : name;
}

void call_rows(Recorder& recorder, const std::string& kernel, std::vector<HostArg> args,
               const EpilogueOperands& terms, const Operand& out) {
  terms.append_to(args, out);
  args.push_back(out);
  recorder.call(kernel, DeviceClass::kCpu, args);
}

}  // namespace

Plan plan_conv2d_rows(const ConvConfig& c, const ConvEpilogue& e) {
  const int64_t outputs = c.out_channels / c.groups, inputs = c.in_channels / c.groups,
                taps = c.kernel_h * c.kernel_w;
  const EpilogueOperands terms(e, {outputs, c.groups});
  const Operand weights{1,
                        DType::kF32,
                        {c.kernel_w, c.kernel_h, inputs, outputs, c.groups},
                        {1, c.kernel_w, taps, inputs * taps, outputs * inputs * taps},
                        {}};
  Recorder recorder(kNoAliases);
  Workspace scratch(terms.out + 1);
  const PaddedPlanes in = pad_input(recorder, scratch, 0, c);
  const bool is_dense =
      !has_strides(c) && !e.has_residual && c.out_h() >= kConvRows && c.out_w() >= kLanes;
  call_rows(recorder, kernel_of("conv_rows", c, is_dense),
            {number(c.stride_h), number(c.stride_w), number(c.dilation_h), number(c.dilation_w),
             number(0), number(row_blocks_per_group(c.out_h(), c.out_w(), taps * inputs)),
             padded_planes(in, c, inputs), weights},
            terms, dense_planes(terms.out, c, outputs, c.out_h(), c.out_w()));
  return recorder.finish(scratch);
}

Plan plan_conv2d_input_grad_rows(const ConvConfig& c) {
  const int64_t outputs = c.in_channels / c.groups, inputs = c.out_channels / c.groups,
                taps = c.kernel_h * c.kernel_w;
  const EpilogueOperands terms({}, {outputs, c.groups});
  const Operand weights{1,
                        DType::kF32,
                        {c.kernel_w, c.kernel_h, inputs, outputs, c.groups},
                        {1, c.kernel_w, outputs * taps, taps, outputs * inputs * taps},
                        {}};
  Recorder recorder(kNoAliases);
  Workspace scratch(3);
  const PaddedPlanes in = pad_gradient(recorder, scratch, 0, c);
  call_rows(recorder, kernel_of("conv_rows", c, c.height >= kConvRows && c.width >= kLanes),
            {number(1), number(1), number(c.dilation_h), number(c.dilation_w), number(1),
             number(row_blocks_per_group(c.height, c.width, taps * inputs)),
             padded_planes(in, c, inputs), weights},
            terms, dense_planes(terms.out, c, outputs, c.height, c.width));
  return recorder.finish(scratch);
}

Plan plan_conv2d_weight_grad_rows(const ConvConfig& c) {
  const int64_t outputs = c.out_channels / c.groups, inputs = c.in_channels / c.groups,
                taps = c.kernel_h * c.kernel_w;
  Recorder recorder(kNoAliases);
  Workspace scratch(3);
  const PaddedPlanes in = pad_input(recorder, scratch, 1, c);
  recorder.call(kernel_of("conv_weight_rows", c, !has_strides(c) && c.out_w() >= kLanes),
                DeviceClass::kCpu,
                {number(c.stride_h), number(c.stride_w), number(c.dilation_h), number(c.dilation_w),
                 padded_planes(in, c, inputs), dense_planes(0, c, outputs, c.out_h(), c.out_w()),
                 Operand{2,
                         DType::kF32,
                         {c.kernel_w, c.kernel_h, inputs, outputs, c.groups},
                         {1, c.kernel_w, taps, inputs * taps, outputs * inputs * taps},
                         {}}});
  return recorder.finish(scratch);
}

}  // namespace ballast::kernels
