// Plans depthwise convolutions on CPU-class devices: one input channel per group, planes that a
// work-item pads on its stack (conv_depth_generator.cpp).
#pragma once

#include "kernels/conv/conv.h"

namespace ballast::kernels {

constexpr int kDepthElements = 16384;  // of a padded plane, or as many of its rows as are needed
constexpr int kDepthRows = 4;          // that are computed together
constexpr int kDepthRowsVectors = 4;   // of the rows that are read where they lie, at most
constexpr int kDepthLinesElements = 4096;  // of a block of lines and its margins
constexpr int kDepthTaps = 7;              // along an axis, for the weight gradient

// Whether lanes along the rows suit it best: 3x3 without strides and dilation, in rows of a few
// vectors or planes that are whole lines.
bool suits_rows(const ConvConfig& config);

// Whether it is 3x3 of stride 2 and halves planes of even extents: forward and towards the input
// conv_depth_halves reads and writes them where they lie.
bool is_halved(const ConvConfig& config);

// Whether these plans take it.
bool is_depthwise(const ConvConfig& config);
bool is_depthwise_input_grad(const ConvConfig& config);
bool is_depthwise_weight_grad(const ConvConfig& config);

Plan plan_conv2d_depthwise(const ConvConfig& config, const ConvEpilogue& epilogue);
Plan plan_conv2d_input_grad_depthwise(const ConvConfig& config);
Plan plan_conv2d_weight_grad_depthwise(const ConvConfig& config);

}  // namespace ballast::kernels
