#include "kernels/conv/planes/conv_planes.h"

#include "kernels/conv/conv_arguments.h"
#include "kernels/conv/conv_operands.h"
#include "kernels/conv/conv_problem.h"
#include "kernels/conv/tiles/conv_tiles.h"
#include "kernels/plan/registers.h"
#include "kernels/recipe/lanes.h"

#include <algorithm>
#include <vector>

namespace ballast::kernels {
namespace {

// What is kept in registers. Kernels are named by channels and vectors of pixels, and lanes of
// these where they are not kLanes.
struct Tile {
  const char* kernel;
  int64_t channels, pixels;
  bool is_stored = false;  // from the registers: vectors do not lie across the ends of rows
  int64_t lanes = kLanes;  // of a vector
  bool has_channel_lanes() const { return channels > pixels; }
  int64_t cycles_per_tap() const { return channels * pixels / (2 * kLanes); }
  int64_t count(const ConvProblem& p) const { return ceil_div(p.outputs, channels); }
};
struct Tiles {
  std::vector<Tile> pixel_lanes;
  Tile channel_lanes;
};
const Tiles kWideTiles = {{{"conv_plane_rows_8x3", 8, 48, true},
                           {"conv_plane_rows_6x4", 6, 64, true},
                           {"conv_plane_rows_4x6", 4, 96, true},
                           {"conv_planes_8x3", 8, 48},
                           {"conv_planes_6x4", 6, 64},
                           {"conv_planes_4x6", 4, 96}},
                          {"conv_plane_channels_6x4", 64, 6}};
const Tiles kNarrowTiles = {{{"conv_plane_rows_6x1", 6, 16, true},
                             {"conv_plane_rows_6x2x8", 6, 16, true, kLanes / 2},
                             {"conv_plane_rows_4x3x8", 4, 24, true, kLanes / 2},
                             {"conv_planes_6x1", 6, 16}},
                            {"conv_plane_channels_6x1", 16, 6}};

const Tiles& tiles_of_cpu() { return has_wide_registers() ? kWideTiles : kNarrowTiles; }

// How a problem is cut into work-groups.
struct Cut {
  const Tile* tile;
  int64_t pitch, rows = 0, plane, tiles, elements, blocks;
  int64_t parts, tiles_per_part;
  int64_t work;  // of all tiles, and what is copied
};

Cut cut_rows(const ConvProblem& p, const Tile& tile, int64_t pitch, int64_t rows) {
  Cut cut{&tile, pitch, rows};
  cut.plane = (rows + p.reach_h()) * pitch;
  const int64_t all = p.inputs * p.phases() * cut.plane;
  int64_t last = all;
  if (tile.has_channel_lanes()) {
    cut.tiles = ceil_div(rows * p.out_w, tile.pixels);
  } else if (tile.is_stored) {
    cut.tiles = ceil_div(rows * ceil_div(p.out_w, tile.lanes), tile.pixels / tile.lanes);
  } else {
    // Vectors lie side by side, and the last tile reads beyond the last row.
    cut.tiles = ceil_div((rows - 1) * pitch + p.out_w, tile.pixels);
    last += p.reach_h() * pitch + p.reach_w() + cut.tiles * tile.pixels - cut.plane;
  }
  cut.elements = ceil_div(std::max(last, all), kLanes) * kLanes;
  cut.blocks = ceil_div(p.out_h, rows);
  return cut;
}

// How many pixels a work-group may take: where none wait on the stack, and work-groups are many,
// more, of whose rows fewer are copied twice.
int64_t most_pixels(const ConvProblem& p, const Cut& cut) {
  constexpr int64_t kManyGroups = 16;
  const bool has_many = cut.blocks * p.batch * p.groups >= kManyGroups;
  return cut.tile->is_stored && has_many ? 2 * kPlanePixels : kPlanePixels;
}

// The rows that take the least work; none where no rows fit.
Cut cut_problem(const ConvProblem& p, const Tile& tile) {
  const int64_t pitch = std::max(p.out_w + p.reach_w(), (p.left + p.in_w - 1) / p.stride_w + 1);
  Cut best{};
  for (int64_t rows = 1; rows <= p.out_h; ++rows) {
    Cut cut = cut_rows(p, tile, pitch, rows);
    if (cut.elements > kPlaneElements || cut.tiles * tile.pixels > most_pixels(p, cut)) break;
    // Tiles, vectors copied, and results that are stored when all of a block are computed.
    const int64_t tile_work = cut.tiles * p.taps() * tile.count(p) * tile.cycles_per_tap();
    const int64_t stored = tile.is_stored ? 0 : p.outputs * rows * p.out_w;
    cut.work = cut.blocks * (tile_work + (cut.elements * 8 + stored * 10) / kLanes);
    if (best.rows == 0 || cut.work <= best.work) best = cut;
  }
  if (best.rows == 0) return best;
  const ChannelParts parts = share_channels(best.blocks * p.batch * p.groups, best.tile->count(p));
  best.parts = parts.count, best.tiles_per_part = parts.tiles;
  return best;
}

// The results of a work-group as they are written: rows without gaps are one.
struct Written {
  int64_t height, width, rows;
};
Written written(const ConvProblem& p, const Cut& cut) {
  if (cut.tile->has_channel_lanes()) return {1, p.out_h * p.out_w, cut.rows};
  if (cut.blocks == 1 && cut.pitch == p.out_w) return {1, p.out_h * p.out_w, 1};
  return {p.out_h, p.out_w, cut.rows};
}

// Whether so few products are summed that few channels are better off elsewhere: in conv_depth.cpp,
// or as a product.
bool is_short(const ConvProblem& p) { return p.inputs == 1 || p.window() == 1; }

// Of fewer taps all channels' weights and the pixels that a tile sees stay in the nearest cache
// whatever the lanes are, and pixels in them need neither chunks nor transposing.
int64_t least_taps() { return has_wide_registers() ? 208 : 96; }

// Channels in the lanes where they fill their tiles, and enough of them for what is transposed.
// Both kinds need work-groups enough.
Cut cut_problem(const ConvProblem& p) {
  constexpr int64_t kLeastGroups = 8;
  const auto& [pixel_lanes, channel_lanes] = tiles_of_cpu();
  if (p.outputs >= channel_lanes.channels && fills_tiles(p.outputs, channel_lanes.channels) &&
      p.window() > 1 && p.taps() >= least_taps()) {
    const Cut cut = cut_problem(p, channel_lanes);
    const bool has_vectors = cut.rows * p.out_w >= kLanes;
    const int64_t groups = cut.blocks * cut.parts * p.batch * p.groups;
    if (cut.rows > 0 && has_vectors && groups >= kLeastGroups) return cut;
  }
  Cut best{};
  for (const Tile& tile : pixel_lanes) {
    if (p.outputs < tile.channels || (tile.channels < 6 && is_short(p))) continue;
    if (tile.is_stored && p.out_w < tile.lanes) continue;
    const Cut cut = cut_problem(p, tile);
    if (cut.rows > 0 && (best.rows == 0 || cut.work < best.work)) best = cut;
  }
  return best;
}

// Whether the planes stay in the second cache while a tile's weights pass; where they do not, 3x3
// of 256 channels two apart, 28x28, took 1.2 times as long as in conv_tiles (Zen 4).
bool is_near(const ConvProblem& p, const Cut& cut) {
  constexpr int64_t kNearFloats = (1 << 20) / sizeof(float);
  return cut.elements + p.taps() * cut.tile->channels <= kNearFloats;
}

// Whether planes compute a seventh more than such tiles, what lies in gaps and beyond channels: 32
// groups of 32 channels of 8x7x7, 3x3, on a Zen 4 2.7 to 1.8 ms in tiles of 12 x 32, of 14x14 two
// apart 3.5 to 3.1.
bool wastes_more(const ConvProblem& p, const Cut& cut, const ConvTile& tile) {
  const auto whole = [](int64_t count, int64_t of) { return ceil_div(count, of) * of; };
  const int64_t in_planes =
      cut.blocks * cut.tiles * cut.tile->pixels * whole(p.outputs, cut.tile->channels);
  const int64_t in_tiles =
      whole(p.out_h * p.out_w, tile.broadcast) * whole(p.outputs, tile.lanes());
  return 7 * in_planes >= 8 * in_tiles;
}

// Whether conv_tiles.cpp, which reads x where it lies, or for 1x1 a product is faster: for channels
// that fill tiles, where nothing is to be padded, planes are too large, or much is computed for the
// gaps between rows.
bool is_better_in_tiles(const ConvProblem& p, const Cut& cut) {
  constexpr int64_t kLeastTaps = 48, kLeastPaddedTaps = 96;
  const int64_t pixels = p.out_h * p.out_w;
  const ConvTile& tile = choose_conv_tile(p.outputs, pixels);
  const bool is_pixel = p.window() == 1;
  const bool is_fast = tile.is_fast() || row_of_tile(p.outputs, p.out_h, p.out_w, p.stride_w) > 1 ||
                       (tile.vectors == 2 && (is_pixel || wastes_more(p, cut, tile)));
  if (!fills_tiles(p.outputs, tile.lanes()) || !is_fast) return false;
  const auto reaches = [](int64_t out, int64_t stride, int64_t kernel, int64_t dilation) {
    return (out - 1) * stride + (kernel - 1) * dilation + 1;
  };
  const bool is_padded = p.top > 0 || p.left > 0 ||
                         reaches(p.out_h, p.stride_h, p.kernel_h, p.dilation_h) > p.in_h ||
                         reaches(p.out_w, p.stride_w, p.kernel_w, p.dilation_w) > p.in_w;
  if (!is_padded) return p.taps() >= (is_pixel ? kTilesChannels : kLeastTaps);
  const bool has_gaps = !has_few_gaps(pixels, cut.blocks * cut.tiles * cut.tile->pixels);
  return p.taps() >= kLeastPaddedTaps && (has_gaps || !is_near(p, cut));
}

bool is_taken(const ConvProblem& p) {
  if (p.top < 0 || p.left < 0 || p.taps() > kPlaneTaps || p.taps() == 0) return false;
  if (p.in_h == 0 || p.in_w == 0) return false;
  const Cut cut = cut_problem(p);
  if (cut.rows == 0 || is_better_in_tiles(p, cut)) return false;
  const double useful =
      double(p.out_h * p.out_w) / double(cut.blocks * cut.tiles * cut.tile->pixels);
  return useful >= 0.65;
}

// Room for the weights as conv_planes reads them.
struct Packed {
  Packed(Workspace& scratch, const ConvProblem& p)
      : rows(cut_problem(p).tile->channels),
        tiles(ceil_div(p.outputs, rows)),
        groups(p.groups),
        tile(p.taps() * rows),
        slot(scratch.add_floats(groups * tiles * tile)) {}
  // Its taps in dimensions of these extents.
  Operand as(const std::vector<int64_t>& taps) const {
    Operand operand{slot, DType::kF32, {rows}, {1}, {}};
    int64_t step = rows;
    for (int64_t extent : taps) {
      operand.extents.push_back(extent);
      operand.strides.push_back(step);
      step *= extent;
    }
    operand.extents.insert(operand.extents.end(), {tiles, groups});
    operand.strides.insert(operand.strides.end(), {tile, tiles * tile});
    return operand;
  }

  int64_t rows, tiles, groups, tile;
  uint32_t slot;
};

// The weights, in slot 1, as conv_planes reads them.
Operand pack_weights(Recorder& recorder, Workspace& scratch, const ConvProblem& p) {
  const Packed packed(scratch, p);
  recorder.call("conv_plane_weights", DeviceClass::kCpu,
                {number(p.first_tap), number(p.tap_step),
                 Operand{1,
                         DType::kF32,
                         {p.window(), p.inputs, p.outputs, p.groups},
                         {1, p.in_step, p.out_step, p.group_step},
                         {}},
                 packed.as({p.window(), p.inputs})});
  return packed.as({p.taps()});
}

// Chunks of one length whose weights take half of the nearest cache.
int64_t chunk_taps(const ConvProblem& p, const Tile& tile) {
  constexpr int64_t kMostWeights = 96 * 64;
  return ceil_div(p.taps(), ceil_div(p.taps() * tile.channels, kMostWeights));
}

// x in slot 0.
void record_planes(Recorder& recorder, const ConvProblem& p, const Operand& weights,
                   const ConvEpilogue& e, uint32_t out) {
  const Cut cut = cut_problem(p);
  const Written to = written(p, cut);
  const Operand y = planes_operand(out, p, p.outputs, to.height, to.width);
  std::vector<HostArg> args;
  for (int64_t value : {p.top, p.left, cut.pitch, cut.plane, to.rows, cut.elements, cut.tiles,
                        cut.parts, cut.tiles_per_part}) {
    args.push_back(number(value));
  }
  args.insert(args.end(), {planes_operand(0, p, p.inputs, p.in_h, p.in_w), weights});
  EpilogueOperands(e, {p.outputs, p.groups}).append_to(args, y);
  if (cut.tile->has_channel_lanes()) {
    args.insert(args.end(), {number(p.out_w), number(chunk_taps(p, *cut.tile))});
  }
  for (int64_t value :
       {p.stride_h, p.stride_w, p.dilation_h, p.dilation_w, p.kernel_h, p.kernel_w}) {
    args.push_back(number(value));
  }
  args.insert(
      args.end(),
      {dense_operand(out, DType::kF32, {p.batch, p.groups, p.outputs, p.out_h * p.out_w}), y});
  recorder.call(cut.tile->kernel, DeviceClass::kCpu, args);
}

Recorder recorder_of_planes() { return Recorder(kDirectAccess); }

// Of a window that is moved by `stride` over dx, the part over dy: the places, relative to the
// first that dx's element 0 takes, that any phase of dx takes.
struct PhaseWindow {
  int64_t before, extent;  // places before that of element 0's phase, and all
  PhaseWindow(int64_t kernel, int64_t stride, int64_t padding) {
    const int64_t first = -((kernel - 1 - padding) / stride);  // phase 0, the last tap it may have
    before = -first;
    extent = (stride - 1 + padding) / stride - first + 1;
  }
};

// dx as the convolution of dy to a channel for each phase of dx.
ConvProblem phases_of_input_grad(const ConvConfig& c) {
  const PhaseWindow down(c.kernel_h, c.stride_h, c.top), along(c.kernel_w, c.stride_w, c.left);
  ConvProblem p = forward_problem(c);
  p.inputs = c.out_channels / c.groups;
  p.outputs = c.in_channels / c.groups * c.stride_h * c.stride_w;
  p.in_h = c.out_h(), p.in_w = c.out_w();
  p.out_h = c.height / c.stride_h, p.out_w = c.width / c.stride_w;
  p.kernel_h = down.extent, p.kernel_w = along.extent;
  p.top = down.before, p.left = along.before;
  p.stride_h = p.stride_w = 1;
  return p;
}

Plan plan_phases(const ConvConfig& c) {
  const ConvProblem p = phases_of_input_grad(c);
  const int64_t channels = c.in_channels / c.groups, taps = c.kernel_h * c.kernel_w;
  Recorder recorder = recorder_of_planes();
  Workspace scratch(3);
  const Packed packed(scratch, p);
  recorder.call("conv_phase_weights", DeviceClass::kCpu,
                {number(c.stride_h), number(c.stride_w), number(c.top + p.top * c.stride_h),
                 number(c.left + p.left * c.stride_w),
                 Operand{1,
                         DType::kF32,
                         {c.kernel_w, c.kernel_h, channels, p.inputs, c.groups},
                         {1, c.kernel_w, taps, channels * taps, p.inputs * channels * taps},
                         {}},
                 packed.as({p.kernel_w, p.kernel_h, p.inputs})});
  const uint32_t phases = scratch.add_floats(p.batch * p.groups * p.outputs * p.out_h * p.out_w);
  record_planes(recorder, p, packed.as({p.taps()}), {}, phases);
  weave_phases(recorder, c,
               dense_operand(phases, DType::kF32,
                             {c.batch * c.in_channels, c.stride_h, c.stride_w, p.out_h, p.out_w}));
  return recorder.finish(scratch);
}

}  // namespace

bool is_planes(const ConvConfig& c) { return is_taken(forward_problem(c)); }

bool is_planes_input_grad(const ConvConfig& c) {
  if (c.stride_h == 1 && c.stride_w == 1) return is_taken(input_grad_problem(c));
  if (c.dilation_h != 1 || c.dilation_w != 1 || c.top >= c.kernel_h || c.left >= c.kernel_w ||
      c.height % c.stride_h != 0 || c.width % c.stride_w != 0) {
    return false;
  }
  // Taps that are none cost as much as others; but of few channels conv_tiles leaves half of the
  // lanes empty, and conv_grouped takes all taps for each phase (8x256x56x56 in groups of 8, 3x3
  // two apart, on an Emerald Rapids 9.9 to 4.1 ms).
  constexpr int64_t kFewChannels = 8;
  const ConvProblem p = phases_of_input_grad(c);
  const int64_t all = p.window() * c.stride_h * c.stride_w;
  const bool has_few = has_wide_registers() && c.in_channels / c.groups <= kFewChannels;
  return c.kernel_h * c.kernel_w * (has_few ? 4 : 3) >= 2 * all && is_taken(p);
}

Plan plan_conv2d_planes(const ConvConfig& c, const ConvEpilogue& e) {
  const ConvProblem p = forward_problem(c);
  const uint32_t out = EpilogueOperands(e, {p.outputs, p.groups}).out;
  Recorder recorder = recorder_of_planes();
  Workspace scratch(out + 1);
  record_planes(recorder, p, pack_weights(recorder, scratch, p), e, out);
  return recorder.finish(scratch);
}

Plan plan_conv2d_input_grad_planes(const ConvConfig& c) {
  if (has_strides(c)) return plan_phases(c);
  const ConvProblem p = input_grad_problem(c);
  Recorder recorder = recorder_of_planes();
  Workspace scratch(3);
  record_planes(recorder, p, pack_weights(recorder, scratch, p), {}, 2);
  return recorder.finish(scratch);
}

}  // namespace ballast::kernels
