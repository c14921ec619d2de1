// 1x1 convolutions without strides and padding as products of matrices (kernels/matmul): a sample
// is a matrix of channels by pixels. Stateless; any thread may call.
#pragma once

#include "kernels/conv/conv.h"

namespace ballast::kernels {

// Whether it has single taps, without strides and padding.
bool reads_pixels_in_order(const ConvConfig& config);

// Whether the convolution, with this epilogue, is a batch of products.
bool is_product(DeviceClass device_class, const ConvConfig& config,
                const ConvEpilogue& epilogue = {});

// Whether x and y of a product are copied, so that the pixels of all samples lie side by side: on
// CPUs, where those of one leave many lanes of their last vector empty.
bool is_side_by_side(DeviceClass device_class, const ConvConfig& config);

// Operands as in conv.h.
Plan plan_conv2d_product(DeviceClass device_class, const ConvConfig& config,
                         const ConvEpilogue& epilogue);
Plan plan_conv2d_input_grad_product(DeviceClass device_class, const ConvConfig& config);
Plan plan_conv2d_weight_grad_product(DeviceClass device_class, const ConvConfig& config);

}  // namespace ballast::kernels
