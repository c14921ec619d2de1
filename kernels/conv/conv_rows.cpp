// Convolutions with few output channels per group: see conv_rows_generator.cpp.
#include "kernels/conv/conv_tiles.h"

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

}  // namespace

Plan plan_conv2d_rows(const ConvConfig& c, const ConvEpilogue& e) {
  const int64_t lanes = c.out_channels / c.groups, channels = c.in_channels / c.groups,
                taps = c.kernel_h * c.kernel_w, out_h = c.out_h(), out_w = c.out_w();
  uint32_t slot = 2;
  const auto per_channel = [&](bool is_given) {
    const int64_t step = is_given ? 1 : 0;
    return Operand{is_given ? slot++ : 1, DType::kF32, {lanes, c.groups}, {step, step * lanes}, {}};
  };
  const Operand bias = per_channel(e.has_bias), scale = per_channel(e.has_scale),
                shift = per_channel(e.has_scale);
  Operand residual = dense_planes(e.has_residual ? slot++ : 1, c, lanes, out_h, out_w);
  if (!e.has_residual) residual.strides.assign(5, 0);
  const Operand out = dense_planes(slot, c, lanes, out_h, out_w);
  const Operand weights{1,
                        DType::kF32,
                        {c.kernel_w, c.kernel_h, channels, lanes, c.groups},
                        {1, c.kernel_w, taps, channels * taps, lanes * channels * taps},
                        {}};
  Recorder recorder(kNoAliases);
  Workspace scratch(slot + 1);
  const PaddedPlanes in = pad_input(recorder, scratch, 0, c);
  recorder.call(
      aot_kernel("conv_rows", DeviceClass::kCpu), "conv_rows",
      {number(c.stride_h), number(c.stride_w), number(c.dilation_h), number(c.dilation_w),
       number(0), number(row_blocks_per_group(out_h, out_w, taps * channels)),
       padded_planes(in, c, channels), weights, bias, scale, shift, residual, number(e.has_bias),
       number(e.has_scale), number(e.has_residual), number(e.has_relu), out});
  return recorder.finish(scratch);
}

Plan plan_conv2d_input_grad_rows(const ConvConfig& c) {
  const int64_t lanes = c.in_channels / c.groups, channels = c.out_channels / c.groups,
                taps = c.kernel_h * c.kernel_w;
  const Operand weights{1,
                        DType::kF32,
                        {c.kernel_w, c.kernel_h, channels, lanes, c.groups},
                        {1, c.kernel_w, lanes * taps, taps, lanes * channels * taps},
                        {}};
  const Operand unused{1, DType::kF32, {lanes, c.groups}, {0, 0}, {}};
  Operand residual = dense_planes(1, c, lanes, c.height, c.width);
  residual.strides.assign(5, 0);
  Recorder recorder(kNoAliases);
  Workspace scratch(3);
  const PaddedPlanes in = pad_gradient(recorder, scratch, 0, c);
  recorder.call(
      aot_kernel("conv_rows", DeviceClass::kCpu), "conv_rows",
      {number(1), number(1), number(c.dilation_h), number(c.dilation_w), number(1),
       number(row_blocks_per_group(c.height, c.width, taps * channels)),
       padded_planes(in, c, channels), weights, unused, unused, unused, residual, number(0),
       number(0), number(0), number(0), dense_planes(2, c, lanes, c.height, c.width)});
  return recorder.finish(scratch);
}

Plan plan_conv2d_weight_grad_rows(const ConvConfig& c) {
  const int64_t lanes = c.out_channels / c.groups, channels = c.in_channels / c.groups,
                taps = c.kernel_h * c.kernel_w;
  Recorder recorder(kNoAliases);
  Workspace scratch(3);
  const PaddedPlanes in = pad_input(recorder, scratch, 1, c);
  recorder.call(aot_kernel("conv_weight_rows", DeviceClass::kCpu), "conv_weight_rows",
                {number(c.stride_h), number(c.stride_w), number(c.dilation_h), number(c.dilation_w),
                 padded_planes(in, c, channels), dense_planes(0, c, lanes, c.out_h(), c.out_w()),
                 Operand{2,
                         DType::kF32,
                         {c.kernel_w, c.kernel_h, channels, lanes, c.groups},
                         {1, c.kernel_w, taps, channels * taps, lanes * channels * taps},
                         {}}});
  return recorder.finish(scratch);
}

}  // namespace ballast::kernels
