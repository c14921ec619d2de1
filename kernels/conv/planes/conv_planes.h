// Plans convolutions whose lanes are pixels of padded planes on the stack
// (conv_planes_generator.cpp) for CPU-class devices.
#pragma once

#include "kernels/conv/conv.h"

namespace ballast::kernels {

constexpr int kPlaneElements = 163840;  // of a work-group's padded input
constexpr int kPlaneTaps = 4096;        // of a window in all channels of a group
constexpr int kPlanePixels = 1056;      // of its results per channel that wait there, gaps counted
constexpr int kPlaneVectors = 2 * kPlanePixels / 8;  // of results that do not

// Whether the planes fit, fill enough of their tiles, and are better than register tiles.
bool is_planes(const ConvConfig& config);
bool is_planes_input_grad(const ConvConfig& config);

Plan plan_conv2d_planes(const ConvConfig& config, const ConvEpilogue& epilogue);
Plan plan_conv2d_input_grad_planes(const ConvConfig& config);

}  // namespace ballast::kernels
