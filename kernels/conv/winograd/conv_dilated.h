// Plans 3x3 convolutions with dilation and no strides for CPU-class devices as ones without: pixels
// that are a dilation apart meet only each other, so every such phase of the planes is a sample of
// its own. What copying them costs, Winograd's algorithm (conv_winograd.h) saves several times.
#pragma once

#include "kernels/conv/conv.h"

namespace ballast::kernels {

// Whether it is one whose phases are Winograd's, of enough channels.
bool is_dilated(const ConvConfig& config, const ConvEpilogue& epilogue);
bool is_dilated_input_grad(const ConvConfig& config);
bool is_dilated_weight_grad(const ConvConfig& config);

// Operands as in conv.h.
Plan plan_conv2d_dilated(const ConvConfig& config, const ConvEpilogue& epilogue);
Plan plan_conv2d_input_grad_dilated(const ConvConfig& config);
Plan plan_conv2d_weight_grad_dilated(const ConvConfig& config);

}  // namespace ballast::kernels
