// Plans input gradients of depthwise 5x5 convolutions of stride 2 for CPU-class devices
// (conv_depth_couples_generator.cpp).
#pragma once

#include "kernels/conv/conv.h"

namespace ballast::kernels {

constexpr int kDepthCouplesElements = 8192;  // of dy that a block of dx needs

// Whether it is one in planes of even extents, in rows of dy of a vector and more, and padding of
// up to half a window; not where conv_depth_in_place.h reads dy in place.
bool is_couples_input_grad(const ConvConfig& config);

// Operands as in conv.h.
Plan plan_conv2d_input_grad_couples(const ConvConfig& config);

}  // namespace ballast::kernels
