// Plans 3x3, 4x4 and 5x5 convolutions by Winograd's minimal filtering F(2x2, 3x3) (Lavin and Gray
// 2016) and what is made of it, for CPU-class devices: of 3x3 a tile of 2x2 results takes 16
// multiplications per pair of channels instead of 36, with a stride of 2 25; of 5x5 49 instead of
// 100, of 4x4 with a stride of 2 36 instead of 64 (conv_winograd_generator.cpp).
#pragma once

#include "kernels/conv/conv.h"
#include "kernels/conv/conv_operands.h"
#include "kernels/conv/conv_problem.h"
#include "kernels/conv/winograd/conv_winograd_form.h"

#include <vector>

namespace ballast::kernels {

constexpr int kWinogradSpread = 262400;  // floats of the input of a work-group's tiles, transformed

// The form of a convolution of its window and stride, forward and towards the weights.
const WinogradForm& winograd_form_of(const ConvConfig& config);
// Whether it is a square of so many taps with this stride and without dilation, of any extent but
// 0.
bool has_winograd_window(const ConvConfig& config, int64_t stride = 1, int64_t taps = 3);
// Whether it has a window that there is a form for.
bool has_winograd_form(const ConvConfig& config);
// The register tiles that there are kernels for on this CPU: tiles of results by output channels.
// The first is the weight gradient's too, of input channels by output channels.
std::vector<ConvTile> winograd_tiles();
// Whether results of a sample in so many rows of tiles, which are written as one, are a vector or
// more, also in the last block, whose last tiles may have fewer.
bool fills_vectors(const ConvProblem& problem, int64_t rows,
                   const WinogradForm& form = kWinogradDense);
// (place in a plane, sample, channel, group, 1).
Operand winograd_results(uint32_t slot, const ConvProblem& problem);
// Whether cycles per sample, of a core that does one multiply-add of 16 lanes a cycle, are clearly
// less than those of the direct kernels.
bool is_winograd_faster(double cycles, const ConvConfig& config);

// Whether it is one, of channels that fill vectors, and takes less time than the direct kernels.
bool is_winograd(const ConvConfig& config);
bool is_winograd_input_grad(const ConvConfig& config);

// Operands as in conv.h. What is not finite in x makes NaN of all results of the tiles that it
// reaches.
Plan plan_conv2d_winograd(const ConvConfig& config, const ConvEpilogue& epilogue);
Plan plan_conv2d_input_grad_winograd(const ConvConfig& config);

}  // namespace ballast::kernels
