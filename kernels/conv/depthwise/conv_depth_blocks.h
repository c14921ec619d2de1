// Plans depthwise convolutions of large windows on CPU-class devices with wide registers, by blocks
// of rows in registers (conv_depth_blocks_generator.cpp). Plain functions; any thread.
#pragma once

#include "kernels/conv/conv.h"

namespace ballast::kernels {

// Windows of 5x5 and 7x7 without strides and dilation, with results as large as x, one input
// channel to a group; for dx also one output channel. Not for dw.
bool is_of_blocks(const ConvConfig& config);

Plan plan_conv2d_depth_blocks(const ConvConfig& config, const ConvEpilogue& epilogue);
Plan plan_conv2d_input_grad_depth_blocks(const ConvConfig& config);

}  // namespace ballast::kernels
