#include "kernels/conv/conv_planes.h"

#include "kernels/conv/conv_arguments.h"
#include "kernels/conv/conv_operands.h"
#include "kernels/lanes.h"
#include "kernels/registers.h"

#include <algorithm>
#include <utility>

namespace ballast::kernels {
namespace {

// What is kept in registers.
struct Tile {
  const char* kernel;
  int64_t channels, pixels;
  int64_t cycles_per_tap() const { return channels * pixels / (2 * kLanes); }
};
struct Tiles {
  Tile pixel_lanes, channel_lanes;
};
constexpr Tiles kWideTiles = {{"conv_planes_8x3", 8, 48}, {"conv_plane_channels_6x4", 64, 6}};
constexpr Tiles kNarrowTiles = {{"conv_planes_6x1", 6, 16}, {"conv_plane_channels_6x1", 16, 6}};

const Tiles& tiles_of_cpu() { return has_wide_registers() ? kWideTiles : kNarrowTiles; }

// A convolution of x [batch, groups * inputs, in_h, in_w] to [batch, groups * outputs, out_h,
// out_w].
struct Problem {
  int64_t batch, groups, inputs, outputs, in_h, in_w, out_h, out_w;
  int64_t kernel_h, kernel_w, stride_h, stride_w, dilation_h, dilation_w, top, left;
  int64_t in_step, out_step, group_step, first_tap, tap_step;  // of the weights

  int64_t reach_h() const { return (kernel_h - 1) * dilation_h / stride_h; }
  int64_t reach_w() const { return (kernel_w - 1) * dilation_w / stride_w; }
  int64_t phases() const { return stride_h * stride_w; }
  int64_t taps() const { return kernel_h * kernel_w * inputs; }
  int64_t tiles_of_channels(const Tile& tile) const { return ceil_div(outputs, tile.channels); }
};

// How a problem is cut into work-groups.
struct Cut {
  const Tile* tile;
  int64_t pitch, rows = 0, plane, tiles, elements, blocks;
  int64_t parts, tiles_per_part;
};

Cut cut_rows(const Problem& p, const Tile& tile, int64_t pitch, int64_t rows) {
  Cut cut{&tile, pitch, rows};
  cut.plane = (rows + p.reach_h()) * pitch;
  cut.tiles = ceil_div((rows - 1) * pitch + p.out_w, tile.pixels);
  // Tiles read beyond the last row of results.
  const int64_t last = (p.inputs * p.phases() - 1) * cut.plane + p.reach_h() * pitch + p.reach_w() +
                       cut.tiles * tile.pixels;
  const int64_t all = p.inputs * p.phases() * cut.plane;
  cut.elements = ceil_div(std::max(last, all), kLanes) * kLanes;
  cut.blocks = ceil_div(p.out_h, rows);
  return cut;
}

// The rows that take the least work; none where no rows fit.
Cut cut_problem(const Problem& p, const Tile& tile) {
  const int64_t pitch = std::max(p.out_w + p.reach_w(), (p.left + p.in_w - 1) / p.stride_w + 1);
  Cut best{};
  int64_t least = 0;
  for (int64_t rows = 1; rows <= p.out_h; ++rows) {
    const Cut cut = cut_rows(p, tile, pitch, rows);
    if (cut.elements > kPlaneElements || cut.tiles * tile.pixels > kPlanePixels) break;
    // Tiles, and vectors copied.
    const int64_t tile_work =
        cut.tiles * p.taps() * p.tiles_of_channels(tile) * tile.cycles_per_tap();
    const int64_t work = cut.blocks * (tile_work + cut.elements / kLanes * 8);
    if (best.rows == 0 || work <= least) best = cut, least = work;
  }
  if (best.rows == 0) return best;
  constexpr int64_t kGroups = 8;
  const int64_t channel_tiles = p.tiles_of_channels(tile);
  const int64_t groups = best.blocks * p.batch * p.groups;
  best.parts = std::clamp<int64_t>(ceil_div(kGroups, groups), 1, channel_tiles);
  best.tiles_per_part = ceil_div(channel_tiles, best.parts);
  best.parts = ceil_div(channel_tiles, best.tiles_per_part);
  return best;
}

// The results of a work-group as they are written: rows without gaps are one.
struct Written {
  int64_t height, width, rows;
};
Written written(const Problem& p, const Cut& cut) {
  if (cut.blocks == 1 && cut.pitch == p.out_w) return {1, p.out_h * p.out_w, 1};
  return {p.out_h, p.out_w, cut.rows};
}

// Channels in the lanes where they fill their tiles, and enough of them for what is transposed.
// Both kinds need work-groups enough.
Cut cut_problem(const Problem& p) {
  constexpr int64_t kLeastTaps = 96, kLeastGroups = 8;
  const auto& [pixel_lanes, channel_lanes] = tiles_of_cpu();
  const int64_t computed = p.tiles_of_channels(channel_lanes) * channel_lanes.channels;
  if (p.outputs >= channel_lanes.channels && 8 * p.outputs >= 7 * computed &&
      p.kernel_h * p.kernel_w > 1 && p.taps() >= kLeastTaps) {
    const Cut cut = cut_problem(p, channel_lanes);
    const bool has_vectors = written(p, cut).width >= kLanes;
    const int64_t groups = cut.blocks * cut.parts * p.batch * p.groups;
    if (cut.rows > 0 && has_vectors && groups >= kLeastGroups) return cut;
  }
  return cut_problem(p, pixel_lanes);
}

// Whether conv_tiles.cpp, which reads x where it lies, or for 1x1 a product is faster: for channels
// that fill tiles, where nothing is to be padded, or much is computed for the gaps between rows.
bool is_better_in_tiles(const Problem& p, const Cut& cut) {
  constexpr int64_t kLeastTaps = 48, kLeastPaddedTaps = 96, kLeastChannels = 192;  // of 1x1
  const int64_t pixels = p.out_h * p.out_w;
  const ConvTile& tile = choose_conv_tile(p.outputs, pixels);
  const bool is_filled = 8 * p.outputs >= 7 * ceil_div(p.outputs, tile.lanes()) * tile.lanes();
  if (!is_filled || !tile.is_fast()) return false;
  const auto reaches = [](int64_t out, int64_t stride, int64_t kernel, int64_t dilation) {
    return (out - 1) * stride + (kernel - 1) * dilation + 1;
  };
  const bool is_padded = p.top > 0 || p.left > 0 ||
                         reaches(p.out_h, p.stride_h, p.kernel_h, p.dilation_h) > p.in_h ||
                         reaches(p.out_w, p.stride_w, p.kernel_w, p.dilation_w) > p.in_w;
  const bool is_pixel = p.kernel_h * p.kernel_w == 1;
  if (!is_padded) return p.taps() >= (is_pixel ? kLeastChannels : kLeastTaps);
  return p.taps() >= kLeastPaddedTaps &&
         25 * cut.blocks * cut.tiles * cut.tile->pixels > 27 * pixels;
}

bool is_taken(const Problem& p) {
  if (p.top < 0 || p.left < 0 || p.taps() > kPlaneTaps || p.taps() == 0) return false;
  if (p.outputs < tiles_of_cpu().pixel_lanes.channels || p.in_h == 0 || p.in_w == 0) return false;
  const Cut cut = cut_problem(p);
  if (cut.rows == 0 || is_better_in_tiles(p, cut)) return false;
  const double useful =
      double(p.out_h * p.out_w) / double(cut.blocks * cut.tiles * cut.tile->pixels);
  return useful >= 0.65;
}

Problem forward(const ConvConfig& c) {
  const int64_t in = c.in_channels / c.groups, out = c.out_channels / c.groups,
                taps = c.kernel_h * c.kernel_w;
  Problem p{};
  p.batch = c.batch, p.groups = c.groups, p.inputs = in, p.outputs = out;
  p.in_h = c.height, p.in_w = c.width, p.out_h = c.out_h(), p.out_w = c.out_w();
  p.kernel_h = c.kernel_h, p.kernel_w = c.kernel_w;
  p.stride_h = c.stride_h, p.stride_w = c.stride_w;
  p.dilation_h = c.dilation_h, p.dilation_w = c.dilation_w;
  p.top = c.top, p.left = c.left;
  p.in_step = taps, p.out_step = in * taps, p.group_step = out * in * taps;
  p.first_tap = 0, p.tap_step = 1;
  return p;
}

// With stride 1, dx is the convolution of dy with the window flipped.
Problem input_grad(const ConvConfig& c) {
  Problem p = forward(c);
  std::swap(p.inputs, p.outputs);
  std::swap(p.in_h, p.out_h);
  std::swap(p.in_w, p.out_w);
  p.stride_h = p.stride_w = 1;
  p.top = p.reach_h() - c.top, p.left = p.reach_w() - c.left;
  std::swap(p.in_step, p.out_step);
  p.first_tap = p.kernel_h * p.kernel_w - 1;
  p.tap_step = -1;
  return p;
}

Operand planes(uint32_t slot, const Problem& p, int64_t channels, int64_t height, int64_t width) {
  return dense_operand(slot, DType::kF32, {p.batch, p.groups, channels, height, width});
}

// Room for the weights as conv_planes reads them.
struct Packed {
  Packed(Workspace& scratch, const Problem& p)
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
Operand pack_weights(Recorder& recorder, Workspace& scratch, const Problem& p) {
  const int64_t window = p.kernel_h * p.kernel_w;
  const Packed packed(scratch, p);
  recorder.call("conv_plane_weights", DeviceClass::kCpu,
                {number(p.first_tap), number(p.tap_step),
                 Operand{1,
                         DType::kF32,
                         {window, p.inputs, p.outputs, p.groups},
                         {1, p.in_step, p.out_step, p.group_step},
                         {}},
                 packed.as({window, p.inputs})});
  return packed.as({p.taps()});
}

// Chunks of one length whose weights take half of the nearest cache.
int64_t chunk_taps(const Problem& p, const Tile& tile) {
  constexpr int64_t kMostWeights = 96 * 64;
  return ceil_div(p.taps(), ceil_div(p.taps() * tile.channels, kMostWeights));
}

// x in slot 0.
void record_planes(Recorder& recorder, const Problem& p, const Operand& weights,
                   const ConvEpilogue& e, uint32_t out) {
  const Cut cut = cut_problem(p);
  const Written to = written(p, cut);
  const Operand y = planes(out, p, p.outputs, to.height, to.width);
  std::vector<HostArg> args;
  for (int64_t value :
       {p.stride_h, p.stride_w, p.dilation_h, p.dilation_w, p.top, p.left, p.kernel_h, p.kernel_w,
        cut.pitch, cut.plane, to.rows, cut.elements, cut.tiles, std::min<int64_t>(kLanes, to.width) - 1,
        cut.parts, cut.tiles_per_part, chunk_taps(p, *cut.tile)}) {
    args.push_back(number(value));
  }
  args.insert(args.end(), {planes(0, p, p.inputs, p.in_h, p.in_w), weights});
  EpilogueOperands(e, {p.outputs, p.groups}).append_to(args, y);
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
Problem phases_of_input_grad(const ConvConfig& c) {
  const PhaseWindow down(c.kernel_h, c.stride_h, c.top), along(c.kernel_w, c.stride_w, c.left);
  Problem p = forward(c);
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
  const Problem p = phases_of_input_grad(c);
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
  const int64_t count = c.batch * c.in_channels;
  recorder.call(
      "conv_gather", DeviceClass::kCpu,
      {number(0), number(0), number(c.stride_h), number(c.stride_w), number(1), number(1),
       dense_operand(phases, DType::kF32, {count, c.stride_h, c.stride_w, p.out_h, p.out_w}),
       Operand{2,
               DType::kF32,
               {p.out_w, c.stride_w, p.out_h, c.stride_h, count},
               {c.stride_w, 1, c.stride_h * c.width, c.width, c.height * c.width},
               {}}});
  return recorder.finish(scratch);
}

}  // namespace

bool is_planes(const ConvConfig& c) { return is_taken(forward(c)); }

bool is_planes_input_grad(const ConvConfig& c) {
  if (c.stride_h == 1 && c.stride_w == 1) return is_taken(input_grad(c));
  if (c.dilation_h != 1 || c.dilation_w != 1 || c.top >= c.kernel_h || c.left >= c.kernel_w ||
      c.height % c.stride_h != 0 || c.width % c.stride_w != 0) {
    return false;
  }
  // Taps that are none cost as much as others.
  const Problem p = phases_of_input_grad(c);
  const int64_t all = p.kernel_h * p.kernel_w * c.stride_h * c.stride_w;
  return 3 * c.kernel_h * c.kernel_w >= 2 * all && is_taken(p);
}

Plan plan_conv2d_planes(const ConvConfig& c, const ConvEpilogue& e) {
  const Problem p = forward(c);
  const uint32_t out = EpilogueOperands(e, {p.outputs, p.groups}).out;
  Recorder recorder = recorder_of_planes();
  Workspace scratch(out + 1);
  record_planes(recorder, p, pack_weights(recorder, scratch, p), e, out);
  return recorder.finish(scratch);
}

Plan plan_conv2d_input_grad_planes(const ConvConfig& c) {
  if (c.stride_h > 1 || c.stride_w > 1) return plan_phases(c);
  const Problem p = input_grad(c);
  Recorder recorder = recorder_of_planes();
  Workspace scratch(3);
  record_planes(recorder, p, pack_weights(recorder, scratch, p), {}, 2);
  return recorder.finish(scratch);
}

}  // namespace ballast::kernels
