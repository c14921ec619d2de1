// Plans the weight gradient of 3x3, 4x4 and 5x5 convolutions by Winograd's algorithm for
// CPU-class devices (conv_winograd_weight_generator.cpp).
#pragma once

#include "kernels/conv/conv.h"
#include "kernels/conv/winograd/conv_winograd.h"

namespace ballast::kernels {

constexpr int kWinogradChannels = 72;  // of the input, of a work-group's weight gradient
constexpr int kWinogradPlaces = 4096;  // of the pixels of a vector of channels

// Whether those of a block of so many rows of tiles, of so many samples, are no more, the places of
// its patches' pixels neither.
bool fits_places(const WinogradForm& form, int64_t out_w, int64_t in_w, int64_t rows,
                 int64_t samples);

// Whether it is one, of channels that fill vectors, and takes less time than in register tiles.
bool is_winograd_weight_grad(const ConvConfig& config);

// Operands as in conv.h. What is not finite makes NaN of all taps of its channels' windows.
Plan plan_conv2d_weight_grad_winograd(const ConvConfig& config);

}  // namespace ballast::kernels
