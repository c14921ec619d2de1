// Convolutions as products of matrices for which the image is written as a row per window: those
// whose windows lie side by side (stride = kernel, no padding: the patches of a vision transformer,
// downsampling), and weights of few windows. Stateless; any thread may call.
#pragma once

#include "kernels/conv/conv.h"

namespace ballast::kernels {

// Whether strides are the window, x is whole windows and nothing is padded or dilated.
bool has_windows_side_by_side(const ConvConfig& config);

// Whether the convolution is such, and large enough for the rows to be worth writing.
bool is_patches(const ConvConfig& config);

// Whether windows, of any kind, are so few and weights so many that dw is such a product too: each
// weight is few steps, and a product writes it once and in place. 2 cores of an Emerald Rapids,
// shared: 3x3 of 1024 channels of 4x4 9.5 to 3.3 ms, of 512 of 7x7 2.4 to 1.9, in a sink 1.5; 256
// to 512 of 14x14 two apart 1.7 to 1.0.
bool has_few_windows(const ConvConfig& config);

// Operands as in conv.h; the weights' gradient of any windows on CPUs.
Plan plan_conv2d_patches(DeviceClass device_class, const ConvConfig& config,
                         const ConvEpilogue& epilogue);
Plan plan_conv2d_input_grad_patches(DeviceClass device_class, const ConvConfig& config);
Plan plan_conv2d_weight_grad_patches(DeviceClass device_class, const ConvConfig& config);

}  // namespace ballast::kernels
