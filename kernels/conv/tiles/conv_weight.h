// Plans the weight gradient in register tiles for CPU-class devices (conv_weight_generator.cpp).
#pragma once

#include "kernels/conv/conv.h"

namespace ballast::kernels {

constexpr int kWeightRows = 1024;             // of pixels, of a chunk
constexpr int kWeightChunkBytes = 400 << 10;  // of dy, unless a row has more

Plan plan_conv2d_weight_grad_tiles(const ConvConfig& config);

// Of 1x1 without strides and padding to more channels: dw transposed in these tiles, x in dy's
// place, then turned back, where the fewer channels fill the tiles.
bool is_swapped_weight_grad(const ConvConfig& config);
Plan plan_conv2d_weight_grad_swapped(const ConvConfig& config);

}  // namespace ballast::kernels
