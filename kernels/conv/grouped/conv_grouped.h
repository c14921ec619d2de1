// Plans convolutions of few channels in a group, depthwise ones among them, on CPU-class devices:
// with channels of several groups in the lanes (conv_grouped_generator.cpp).
#pragma once

#include "kernels/conv/conv.h"

namespace ballast::kernels {

constexpr int kGroupedPlaces = 4096;  // of the padded pixels of a block, 16 channels of each
constexpr int kGroupedTaps = 121;     // of a window
constexpr int kGroupedInputs = 16;    // channels of a group that are summed over

// Whether it is one of 8 channels and more, in planes of a vector and more, that other kernels
// do not suit: of any stride, dilation, padding and window of at most so many taps; for the weights
// a square one of 3, 5 or 7.
bool is_grouped(const ConvConfig& config);
bool is_grouped_input_grad(const ConvConfig& config);
bool is_grouped_weight_grad(const ConvConfig& config);

// Operands as in conv.h.
Plan plan_conv2d_grouped(const ConvConfig& config, const ConvEpilogue& epilogue);
Plan plan_conv2d_input_grad_grouped(const ConvConfig& config);
Plan plan_conv2d_weight_grad_grouped(const ConvConfig& config);

}  // namespace ballast::kernels
