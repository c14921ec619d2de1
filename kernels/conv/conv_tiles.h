// Plans convolutions in register tiles for CPU-class devices (conv_tiles_generator.cpp): forward,
// and the input gradient, which is a convolution of dy with flipped weights.
#pragma once

#include "kernels/conv/conv.h"

namespace ballast::kernels {

constexpr int kTilesPixels = 216;  // of a block, in whole tiles
constexpr int kTilesTaps = 512;    // of a chunk

Plan plan_conv2d_tiles(const ConvConfig& config, const ConvEpilogue& epilogue);
Plan plan_conv2d_input_grad_tiles(const ConvConfig& config);
// For strides that divide x's extents, so that no zeros between the strides are multiplied. Each
// phase of dx is a convolution of dy with some of the taps; where a phase has none, all products of
// dy and weights come first, then their sums.
Plan plan_conv2d_input_grad_strided(const ConvConfig& config);

}  // namespace ballast::kernels
