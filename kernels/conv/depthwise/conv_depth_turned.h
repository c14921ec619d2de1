// Plans depthwise convolutions of large windows on CPU-class devices, with planes in the lanes
// (conv_depth_turned_generator.cpp). Plain functions; any thread.
#pragma once

#include "kernels/conv/conv.h"

namespace ballast::kernels {

// Windows of 5x5 and 7x7 without strides and dilation, with results as large as x and one output
// channel to a group; for dx and dw too.
bool is_turned(const ConvConfig& config);
// 5x5 with strides of 2 that halve planes, where registers are narrow; for dw too.
bool is_turned_halved(const ConvConfig& config);
// Such windows on rows of which two would share a vector of a square's kernel: 5x5 of their weights
// has a shuffle for most of its multiply-adds there, which units of its whole width are better
// without.
bool turns_short_rows(const ConvConfig& config);

Plan plan_conv2d_turned(const ConvConfig& config, const ConvEpilogue& epilogue);
Plan plan_conv2d_input_grad_turned(const ConvConfig& config);
Plan plan_conv2d_weight_grad_turned(const ConvConfig& config);

}  // namespace ballast::kernels
