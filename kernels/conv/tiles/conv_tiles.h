// Plans convolutions in register tiles for CPU-class devices (conv_tiles_generator.cpp): forward,
// and the input gradient, which is a convolution of dy with flipped weights.
#pragma once

#include "kernels/conv/conv.h"

namespace ballast::kernels {

constexpr int kTilesPixels = 216;  // of a block, in whole tiles
constexpr int kTilesTaps = 768;    // of a chunk
constexpr int kTilesChannels =
    32;  // of the input, with windows of a pixel: of fewer others are better

// Pixels of a row of results that a tile takes side by side where their channels fill just a
// vector: a part of `out_w` that there is a kernel for, or 1.
int64_t row_of_tile(int64_t channels, int64_t out_h, int64_t out_w, int64_t stride_w);

// Whether 1x1 convolutions without strides to so many channels in planes of so many pixels have
// tiles of two rows of pixels that lie side by side: channels fill their lanes, and planes of which
// a block takes several are whole rows.
bool has_tiles_of_points(int64_t channels, int64_t pixels);

Plan plan_conv2d_tiles(const ConvConfig& config, const ConvEpilogue& epilogue);
Plan plan_conv2d_input_grad_tiles(const ConvConfig& config);
// For strides that divide x's extents, so that no zeros between the strides are multiplied. Each
// phase of dx is a convolution of dy with some of the taps; where a phase has none, or of few input
// channels, all products of dy and weights come first, then their sums.
Plan plan_conv2d_input_grad_strided(const ConvConfig& config);

}  // namespace ballast::kernels
