#include "kernels/conv/depthwise/conv_rows.h"

#include "kernels/conv/conv_arguments.h"
#include "kernels/conv/conv_operands.h"

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

// In blocks of at most four rows.
int64_t row_blocks_per_group(int64_t height, int64_t width, int64_t taps) {
  constexpr int64_t kGroupProducts = 1 << 18, kRows = 4;
  return std::clamp<int64_t>(kGroupProducts / (kRows * width * taps + 1), 1, height);
}

void call_rows(Recorder& recorder, std::vector<HostArg> args, const EpilogueOperands& terms,
               const Operand& out) {
  terms.append_to(args, out);
  args.push_back(out);
  recorder.call("conv_rows", DeviceClass::kCpu, args);
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
  call_rows(recorder,
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
  call_rows(recorder,
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
  recorder.call("conv_weight_rows", DeviceClass::kCpu,
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
