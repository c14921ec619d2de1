// A convolution as the kernels over padded planes see it (conv_planes.h, conv_winograd.h), which
// makes the gradient towards the input of one without strides the same thing. A plain value.
#pragma once

#include "kernels/conv/conv.h"
#include "kernels/plan/halide_runtime.h"

namespace ballast::kernels {

// Of x [batch, groups * inputs, in_h, in_w] to [batch, groups * outputs, out_h, out_w].
struct ConvProblem {
  int64_t batch, groups, inputs, outputs, in_h, in_w, out_h, out_w;
  int64_t kernel_h, kernel_w, stride_h, stride_w, dilation_h, dilation_w, top, left;
  int64_t in_step, out_step, group_step, first_tap, tap_step;  // of the weights

  // Rows and columns that a window reaches beyond its first, counted in strides.
  int64_t reach_h() const { return (kernel_h - 1) * dilation_h / stride_h; }
  int64_t reach_w() const { return (kernel_w - 1) * dilation_w / stride_w; }
  int64_t phases() const { return stride_h * stride_w; }
  int64_t window() const { return kernel_h * kernel_w; }
  int64_t taps() const { return window() * inputs; }
};

ConvProblem forward_problem(const ConvConfig& config);
// dx as the convolution of dy with the window flipped. Without strides.
ConvProblem input_grad_problem(const ConvConfig& config);

// Whether so many channels fill most of the lanes of the tiles that are computed for them.
inline bool fills_tiles(int64_t channels, int64_t of_tile) {
  return 8 * channels >= 7 * ceil_div(channels, of_tile) * of_tile;
}
// Whether most pixels that are computed from padded planes are some, and not the gaps between rows.
inline bool has_few_gaps(int64_t useful, int64_t computed) { return 27 * useful >= 25 * computed; }

// How the tiles of output channels of a block are shared out: among as many parts as it takes for
// eight work-groups, where there are `groups` without that.
struct ChannelParts {
  int64_t count, tiles;  // tiles of one part
};
ChannelParts share_channels(int64_t groups, int64_t channel_tiles);

// [batch, groups, channels, height, width].
Operand planes_operand(uint32_t slot, const ConvProblem& problem, int64_t channels, int64_t height,
                       int64_t width);

}  // namespace ballast::kernels
