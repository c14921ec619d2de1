// Plans convolutions on GPU-class devices as products in blocks (conv_blocks_generator.cpp).
#pragma once

#include "kernels/conv/conv.h"

namespace ballast::kernels {

// Whether there are sums, of channels enough to fill blocks: else a work-item per result does
// better.
bool is_blocked(const ConvConfig& config);
bool is_blocked_input_grad(const ConvConfig& config);
// Whether it is, with this epilogue, a product whose operands GPUs read in vectors of 4 where they
// lie. A sum is the same chain in both.
bool is_blocked_product(const ConvConfig& config, const ConvEpilogue& epilogue = {});

// Operands as in conv.h.
Plan plan_conv2d_blocks(const ConvConfig& config, const ConvEpilogue& epilogue);
Plan plan_conv2d_input_grad_blocks(const ConvConfig& config);
Plan plan_conv2d_weight_grad_blocks(const ConvConfig& config);

}  // namespace ballast::kernels
