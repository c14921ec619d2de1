// What convolutions in tiles and in rows are made of on CPU-class devices: padded planes, and
// panels of weights or of dy for a register tile (conv_pack_generator.cpp).
#pragma once

#include "kernels/conv/conv.h"
#include "kernels/plan/halide_runtime.h"
#include "kernels/plan/registers.h"
#include "kernels/plan/workspace.h"
#include "kernels/recipe/lanes.h"

namespace ballast::kernels {

// Planes with zeros around them, as the tiles read them: n, channel and row are `image`, `plane`
// and `pitch` elements apart.
struct PaddedPlanes {
  uint32_t slot = 0;
  int64_t pitch = 0, plane = 0, image = 0;
};

// x in `slot` padded for the convolution, to planes of that size at least; dy for its input
// gradient.
PaddedPlanes pad_input(Recorder& recorder, Workspace& scratch, uint32_t slot, const ConvConfig& c,
                       int64_t least_h = 0, int64_t least_w = 0);
PaddedPlanes pad_gradient(Recorder& recorder, Workspace& scratch, uint32_t slot,
                          const ConvConfig& c);

// dy in `slot` as it is, so many rows and columns of zeros before it.
PaddedPlanes pad_gradient(Recorder& recorder, Workspace& scratch, uint32_t slot,
                          const ConvConfig& c, int64_t top, int64_t left, int64_t padded_h,
                          int64_t padded_w);

// How many planes, of so many that have so many elements each, a work-group moves that pads or
// picks them: enough to hide its start, few enough to share them out.
int64_t planes_per_group(int64_t elements, int64_t planes);
// The most lanes, of 16, 8 and 4, that rows of so many elements fill; 0: none.
int64_t lanes_of_row(int64_t elements);

// dx, in slot 2, of a convolution whose strides divide its extents, from its phases: (x / stride, y
// / stride, x % stride, y % stride, plane).
void weave_phases(Recorder& recorder, const ConvConfig& c, const Operand& phases);

// A register tile of `broadcast` scalars (pixels, or taps for the weight gradient) by `vectors`
// vectors of kLanes; nanoseconds per fma of a full tile, on the machine that the schedules were
// measured on.
struct ConvTile {
  int64_t broadcast, vectors;
  double fma_ns;
  int64_t lanes() const { return kLanes * vectors; }
  int64_t sums() const { return broadcast * vectors; }
  // Whether its multiply-adds take no longer than any other tile's that fits.
  bool is_fast() const { return vectors >= 3 || !has_wide_registers(); }
};
// The tile that wastes least on `lanes` channels and `count` pixels or taps.
const ConvTile& choose_conv_tile(int64_t lanes, int64_t count);

// The taps of a kernel's window, in the weights': from a first one, so many on at each step.
struct TapOrder {
  int64_t first_x = 0, step_x = 1, first_y = 0, step_y = 1;
  bool is_plain() const { return first_x == 0 && step_x == 1 && first_y == 0 && step_y == 1; }
};
// source(lane, kx, ky, channel, group) as panels (lane, vector, tap, panel of all groups); kx and
// ky count as `order` says.
struct PackedPanels {
  int64_t panels = 0;  // per group
  Operand operand;
};
PackedPanels pack_panels(Recorder& recorder, Workspace& scratch, const ConvTile& tile,
                         const Operand& source, const TapOrder& order);
// dy, in slot 0, for the weight gradient: its pixels are the taps, those of a sample after those of
// the one before.
PackedPanels pack_gradient(Recorder& recorder, Workspace& scratch, const ConvTile& tile,
                           const ConvConfig& c);

}  // namespace ballast::kernels
