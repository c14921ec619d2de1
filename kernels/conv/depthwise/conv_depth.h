// Plans depthwise convolutions on CPU-class devices, of one input channel per group: those that are
// read where they lie (conv_depth_in_place.h), those of large windows in blocks of rows
// (conv_depth_blocks.h) or with planes in the lanes (conv_depth_turned.h), and planes that a
// work-item copies to its stack, in lines (conv_depth_lines_generator.cpp) or between zeros
// (conv_depth_generator.cpp).
#pragma once

#include "kernels/conv/conv.h"

namespace ballast::kernels {

constexpr int kDepthElements = 16384;  // of a padded plane, or as many of its rows as are needed
constexpr int kDepthRows = 4;          // that are computed together
constexpr int kDepthRowsPixels = 64;   // of the rows that are read where they lie, at most
constexpr int kDepthRows5x5 = 32;      // the same for 5x5
constexpr int kDepthLinesElements = 4096;    // of a block of lines and its margins
constexpr int kDepthTaps = 7;                // along an axis, for the weight gradient
constexpr int kDepthWeightPlanes = 16;       // of a work-group towards the weights, at most
constexpr int kDepthPairs = 16;              // of planes, the same, towards y and x too
constexpr int kDepthBlockRows = 7;           // of a block of results in registers
constexpr int kDepthBlockVectors = 2;        // the same, of a row
constexpr int kDepthBlocksElements = 16384;  // of a plane of blocks and the zeros around it
constexpr int kDepthTurnedPlaces = 1024;     // of what a strip of planes in the lanes sees

// Between the rows of a plane of blocks, whole vectors: a row and zeros half a window wide at most.
// The nearest cache is better at rows of 320 bytes than of 512, which 5x5 does not mind.
constexpr int depth_blocks_pitch(int window) { return window == 5 ? 128 : 80; }

// Whether these plans suit it best, towards the weights too, of all that take it: 3x3 without
// strides and dilation, in rows of a few vectors or planes that are whole lines, what is in place,
// and what is turned.
bool suits_depthwise(const ConvConfig& config);

// Whether these plans take it.
bool is_depthwise(const ConvConfig& config);
bool is_depthwise_input_grad(const ConvConfig& config);
bool is_depthwise_weight_grad(const ConvConfig& config);

Plan plan_conv2d_depthwise(const ConvConfig& config, const ConvEpilogue& epilogue);
Plan plan_conv2d_input_grad_depthwise(const ConvConfig& config);
Plan plan_conv2d_weight_grad_depthwise(const ConvConfig& config);

}  // namespace ballast::kernels
