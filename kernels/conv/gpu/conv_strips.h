// Convolutions with square windows on GPUs by work-items that compute strips (conv_strips.cpp).
// Stateless.
#pragma once

#include "kernels/conv/conv.h"

namespace ballast::kernels {

// Whether strips suit it: groups of few channels, which blocks (conv_blocks.h) are not for.
bool is_strips(const ConvConfig& config);
bool is_strips_input_grad(const ConvConfig& config);
bool is_strips_weight_grad(const ConvConfig& config);

// Operands and results as of the plans in conv.h.
Plan plan_conv2d_strips(const ConvConfig& config, const ConvEpilogue& epilogue);
Plan plan_conv2d_input_grad_strips(const ConvConfig& config);
Plan plan_conv2d_weight_grad_strips(const ConvConfig& config);

}  // namespace ballast::kernels
