// Plans input gradients of depthwise convolutions with strides for CPU-class devices: all phases of
// dx are results of one convolution of dy without strides, as channels of their groups.
#pragma once

#include "kernels/conv/conv.h"

namespace ballast::kernels {

// Whether it is one of more than nine taps, strides of 2 that divide its planes, and phases of up
// to 3x3 taps whose rows are a vector and more; not where conv_depth_in_place.h reads dy in place.
bool is_depth_phases_input_grad(const ConvConfig& config);

// Operands as in conv.h.
Plan plan_conv2d_input_grad_depth_phases(const ConvConfig& config);

}  // namespace ballast::kernels
