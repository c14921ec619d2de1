// Convolutions on CPUs of an x whose elements are moved first, or whose gradient's are moved back.
// Stateless; any thread may call.
#pragma once

#include "kernels/conv/conv.h"

namespace ballast::kernels {

// `move`: from x to that of `moved`, one input and one output. Operands as in conv.h.
Plan plan_conv2d_moved(const Plan& move, const ConvConfig& moved, const ConvEpilogue& epilogue);
// `back`: from the dx of `moved`.
Plan plan_conv2d_input_grad_moved(const ConvConfig& moved, const Plan& back);

}  // namespace ballast::kernels
