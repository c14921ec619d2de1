// Convolutions whose windows lie side by side (stride = kernel, no padding: the patches of a vision
// transformer, downsampling) as products of matrices: the image is written as a row per window.
// Stateless; any thread may call.
#pragma once

#include "kernels/conv/conv.h"

namespace ballast::kernels {

// Whether the convolution is such, and large enough for the rows to be worth writing.
bool is_patches(const ConvConfig& config);

// Operands as in conv.h.
Plan plan_conv2d_patches(DeviceClass device_class, const ConvConfig& config,
                         const ConvEpilogue& epilogue);
Plan plan_conv2d_input_grad_patches(DeviceClass device_class, const ConvConfig& config);
Plan plan_conv2d_weight_grad_patches(DeviceClass device_class, const ConvConfig& config);

}  // namespace ballast::kernels
