// Plans depthwise convolutions whose planes are too small, or whose windows are too odd, for lanes
// along a row: on CPU-class devices, with channels in the lanes
// (conv_depth_channels_generator.cpp).
#pragma once

#include "kernels/conv/conv.h"

namespace ballast::kernels {

constexpr int kDepthPlaces = 4096;      // of the padded pixels of a block, 16 channels of each
constexpr int kDepthChannelTaps = 121;  // of a window

// Whether it is one of 8 channels and more, in planes of a vector and more, that lanes along a row
// (conv_depth.h) do not suit: of any stride, dilation, padding and window of at most so many taps;
// for the weights a square one of 3, 5 or 7.
bool is_depthwise_channels(const ConvConfig& config);
bool is_depthwise_channels_input_grad(const ConvConfig& config);
bool is_depthwise_channels_weight_grad(const ConvConfig& config);

// Operands as in conv.h.
Plan plan_conv2d_depthwise_channels(const ConvConfig& config, const ConvEpilogue& epilogue);
Plan plan_conv2d_input_grad_depthwise_channels(const ConvConfig& config);
Plan plan_conv2d_weight_grad_depthwise_channels(const ConvConfig& config);

}  // namespace ballast::kernels
