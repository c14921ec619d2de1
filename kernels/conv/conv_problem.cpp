#include "kernels/conv/conv_problem.h"

#include <algorithm>
#include <utility>

namespace ballast::kernels {

ConvProblem forward_problem(const ConvConfig& c) {
  const int64_t in = c.in_channels / c.groups, out = c.out_channels / c.groups,
                taps = c.kernel_h * c.kernel_w;
  ConvProblem p{};
  p.batch = c.batch, p.groups = c.groups, p.inputs = in, p.outputs = out;
  p.in_h = c.height, p.in_w = c.width, p.out_h = c.out_h(), p.out_w = c.out_w();
  p.kernel_h = c.kernel_h, p.kernel_w = c.kernel_w;
  p.stride_h = c.stride_h, p.stride_w = c.stride_w;
  p.dilation_h = c.dilation_h, p.dilation_w = c.dilation_w;
  p.top = c.top, p.left = c.left;
  p.in_step = taps, p.out_step = in * taps, p.group_step = out * in * taps;
  p.first_tap = 0, p.tap_step = 1;
  return p;
}

ConvProblem input_grad_problem(const ConvConfig& c) {
  ConvProblem p = forward_problem(c);
  std::swap(p.inputs, p.outputs);
  std::swap(p.in_h, p.out_h);
  std::swap(p.in_w, p.out_w);
  p.stride_h = p.stride_w = 1;
  p.top = p.reach_h() - c.top, p.left = p.reach_w() - c.left;
  std::swap(p.in_step, p.out_step);
  p.first_tap = p.window() - 1;
  p.tap_step = -1;
  return p;
}

ChannelParts share_channels(int64_t groups, int64_t channel_tiles) {
  constexpr int64_t kGroups = 8;
  const int64_t wanted = std::clamp<int64_t>(ceil_div(kGroups, groups), 1, channel_tiles);
  const int64_t tiles = ceil_div(channel_tiles, wanted);
  return {ceil_div(channel_tiles, tiles), tiles};
}

Operand planes_operand(uint32_t slot, const ConvProblem& p, int64_t channels, int64_t height,
                       int64_t width) {
  return dense_operand(slot, DType::kF32, {p.batch, p.groups, channels, height, width});
}

}  // namespace ballast::kernels
