// Plans depthwise convolutions on CPU-class devices that read x, or dy, where it lies: 3x3 and 5x5
// of small squares (conv_depth_squares_generator.cpp), 3x3 of stride 2 that halves planes, and y
// of 5x5 (conv_depth_halves_generator.cpp), 3x3 and 5x5 in rows of few vectors
// (conv_depth_rows_generator.cpp).
#pragma once

#include "kernels/conv/conv.h"

namespace ballast::kernels {

// Whether these plans take it, forward, towards the input (of a group's one result), or towards the
// weights.
bool is_in_place(const ConvConfig& config, bool has_residual = false);
bool is_in_place_input_grad(const ConvConfig& config);
bool is_in_place_weight_grad(const ConvConfig& config);

Plan plan_conv2d_in_place(const ConvConfig& config, const ConvEpilogue& epilogue);
Plan plan_conv2d_input_grad_in_place(const ConvConfig& config);
Plan plan_conv2d_weight_grad_in_place(const ConvConfig& config);

}  // namespace ballast::kernels
