// Plans gradients towards the input of convolutions two apart, whose four phases are computed from
// the same padded planes of dy (conv_plane_phases_generator.cpp) for CPU-class devices.
#pragma once

#include "kernels/conv/conv.h"

namespace ballast::kernels {

constexpr int kPhasePixels = 256;  // of a work-group's results per channel and phase, gaps counted
constexpr int kPhaseTaps = 2048;   // of a phase's window in all channels of a group

bool is_plane_phases_input_grad(const ConvConfig& config);

Plan plan_conv2d_input_grad_plane_phases(const ConvConfig& config);

}  // namespace ballast::kernels
