// Convolutions whose windows lie side by side and are narrow (stride = kernel of 2 to 7, no
// padding: what an image transformer begins with and downsamples by) on CPUs: a window's pixels
// become channels (space to depth), of which the convolution is one of 1x1 with the same weights.
// Wider windows: conv_patches.h. Stateless; any thread may call.
#pragma once

#include "kernels/conv/conv.h"

namespace ballast::kernels {

// Towards y on AVX2's registers, of two or four columns and 32 taps. 2 cores of a Zen 3, shared:
// 4x4 of 3 channels of 224x224 to 96 3.4 to 1.95 ms, 2x2 of 96 channels of 56x56 to 192 6.8 to 6.4;
// of three or seven columns moving the image takes longer than it saves (7x7 1.3 to 1.9), as with
// fewer taps.
bool is_side_by_side(const ConvConfig& config);
// Of any number of columns: these 4.2 to 2.0, 9.5 to 6.8, and 3.7 to 1.9 ms.
bool is_side_by_side_input_grad(const ConvConfig& config);

// Operands as in conv.h. (Towards the weights tiles that read x where it lies are as fast.)
Plan plan_conv2d_side_by_side(const ConvConfig& config, const ConvEpilogue& epilogue);
Plan plan_conv2d_input_grad_side_by_side(const ConvConfig& config);

}  // namespace ballast::kernels
