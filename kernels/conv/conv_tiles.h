// Plans convolutions in register tiles for CPU-class devices (conv_tiles_generator.cpp): forward,
// the input gradient, which is a convolution of dy with flipped weights, and the weight gradient
// (conv_weight_generator.cpp).
#pragma once

#include "kernels/conv/conv.h"
#include "kernels/halide_runtime.h"
#include "kernels/registers.h"
#include "kernels/workspace.h"

namespace ballast::kernels {

constexpr int kTilesPixels = 144;  // of a block, in whole tiles
constexpr int kTilesTaps = 512;    // of a chunk
constexpr int kWeightRows = 1024;  // of pixels, of a chunk of the weight gradient

inline HostArg number(int64_t value) { return static_cast<int32_t>(value); }

// Planes with zeros around them, as the tiles read them: n, channel and row are `image`, `plane`
// and `pitch` elements apart.
struct PaddedPlanes {
  uint32_t slot = 0;
  int64_t pitch = 0, plane = 0, image = 0;
};

// Surrounds (and with strides, intersperses) the planes of dense f32 [batch, channels, height,
// width] in `slot` with zeros so that they are padded_h x padded_w, or hands them back as they are
// where that changes nothing. `top` and `left` may be negative: rows and columns are dropped.
struct Padding {
  int64_t top = 0, left = 0, stride_h = 1, stride_w = 1, padded_h = 0, padded_w = 0;
};
PaddedPlanes pad_planes(Recorder& recorder, Workspace& scratch, uint32_t slot, const Shape& shape,
                        const Padding& padding);

// x in `slot` padded for the convolution, and dy for its input gradient.
PaddedPlanes pad_input(Recorder& recorder, Workspace& scratch, uint32_t slot, const ConvConfig& c);
PaddedPlanes pad_gradient(Recorder& recorder, Workspace& scratch, uint32_t slot,
                          const ConvConfig& c);

// A register tile of `broadcast` scalars (pixels, or taps for the weight gradient) by 16 `vectors`
// lanes; nanoseconds per fma of a full tile, on the machine that the schedules were measured on.
struct ConvTile {
  int64_t broadcast, vectors;
  double fma_ns;
  int64_t lanes() const { return 16 * vectors; }
  int64_t sums() const { return broadcast * vectors; }
  // Whether its multiply-adds take no longer than any other tile's that fits.
  bool is_fast() const { return vectors >= 3 || !has_wide_registers(); }
};
// The tile that wastes least on `lanes` channels and `count` pixels or taps.
const ConvTile& choose_conv_tile(int64_t lanes, int64_t count);

// source(lane, kx, ky, channel, group) as panels (lane, vector, tap, panel of all groups).
struct PackedPanels {
  int64_t panels = 0;  // per group
  Operand operand;
};
PackedPanels pack_panels(Recorder& recorder, Workspace& scratch, const ConvTile& tile,
                         const Operand& source, bool is_flipped);

Plan plan_conv2d_tiles(const ConvConfig& config, const ConvEpilogue& epilogue);
Plan plan_conv2d_input_grad_tiles(const ConvConfig& config);
// For strides that divide x's extents: all products of dy and weights first, then their sums, so
// that no zeros between the strides are multiplied.
Plan plan_conv2d_input_grad_strided(const ConvConfig& config);
Plan plan_conv2d_weight_grad_tiles(const ConvConfig& config);

// The same with pixels in the lanes, for few output channels per group.
Plan plan_conv2d_rows(const ConvConfig& config, const ConvEpilogue& epilogue);
Plan plan_conv2d_input_grad_rows(const ConvConfig& config);
Plan plan_conv2d_weight_grad_rows(const ConvConfig& config);

}  // namespace ballast::kernels
