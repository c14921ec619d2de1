// Plans convolutions of single pixels with strides for CPU-class devices as ones without, of the
// pixels that they read.
#pragma once

#include "kernels/conv/conv.h"

namespace ballast::kernels {

// Whether it is one without padding. Forward, of rows of results of a vector of 4 and more; where
// registers are computed by halves, not where output channels fill the tiles of conv_tiles.h, which
// read x where it lies, and input channels are not few. Towards the weights, where they are not, of
// small planes.
bool is_picked(const ConvConfig& config);
bool is_picked_input_grad(const ConvConfig& config);
bool is_picked_weight_grad(const ConvConfig& config);

// Operands as in conv.h.
Plan plan_conv2d_picked(const ConvConfig& config, const ConvEpilogue& epilogue);
Plan plan_conv2d_input_grad_picked(const ConvConfig& config);
Plan plan_conv2d_weight_grad_picked(const ConvConfig& config);

}  // namespace ballast::kernels
