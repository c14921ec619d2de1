// Plans 3x3 convolutions of many channels without strides by Winograd's algorithm for CPU-class
// devices, where weights are more than a core's caches hold: work-groups are parts of the output
// channels, which read their weights once per block of tiles (conv_winograd_deep_generator.cpp).
#pragma once

#include "kernels/conv/conv.h"
#include "kernels/conv/conv_problem.h"

namespace ballast::kernels {

constexpr int kWinogradDeepTiles = 132;  // those of a block in whole register tiles
constexpr int kWinogradChunk = 128;      // channels whose windows a work-group keeps, transformed

// Cycles per sample, as is_winograd_faster counts them; infinite where it is none.
double winograd_deep_cycles(const ConvProblem& problem);
// x and the weights in slots 0 and 1.
Plan plan_winograd_deep(const ConvProblem& problem, const ConvEpilogue& epilogue);

}  // namespace ballast::kernels
