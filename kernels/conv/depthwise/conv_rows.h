// Plans convolutions of few output channels per group for CPU-class devices
// (conv_rows_generator.cpp): pixels in the lanes.
#pragma once

#include "kernels/conv/conv.h"

namespace ballast::kernels {

constexpr int kConvRows = 4;  // of a block of results, at most

Plan plan_conv2d_rows(const ConvConfig& config, const ConvEpilogue& epilogue);
Plan plan_conv2d_input_grad_rows(const ConvConfig& config);
Plan plan_conv2d_weight_grad_rows(const ConvConfig& config);

}  // namespace ballast::kernels
