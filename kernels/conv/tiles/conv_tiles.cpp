#include "kernels/conv/tiles/conv_tiles.h"

#include "kernels/conv/conv_arguments.h"
#include "kernels/conv/conv_operands.h"
#include "kernels/conv/conv_phases.h"
#include "kernels/conv/conv_problem.h"
#include "kernels/recipe/lanes.h"
#include "kernels/shape/region.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace ballast::kernels {
namespace {

constexpr int64_t kRowOfPoints = 7;  // pixels; planes of CNNs are multiples
constexpr ConvTile kTileOfPoints{2 * kRowOfPoints, 2, 1 / 240.0};

// A convolution without padding: groups x [N, channels, ., .] to [N, lanes, out_h, out_w].
struct Problem {
  EpilogueOperands terms;
  PaddedPlanes in;
  int64_t batch, groups, channels, lanes, out_h, out_w;
  int64_t kernel_h, kernel_w, stride_h, stride_w, dilation_h, dilation_w;
  Operand weights;  // (lane, kx, ky, channel, group)
  TapOrder order;
  int64_t first_place = 0;  // of the padded planes, that the first window begins at
  Operand out;              // (pixel, lane, group, n)

  int64_t taps() const { return kernel_h * kernel_w * channels; }
  int64_t pixels() const { return out_h * out_w; }
};

// How many images of small planes are multiplied together: so many that the last tile has few
// pixels to spare, and work-groups are enough.
int64_t images_of_block(const Problem& p, int64_t panels) {
  constexpr int64_t kGroups = 12;
  int64_t images = 1;
  for (int64_t more = 2; more <= p.batch && more * p.pixels() <= kTilesPixels; ++more) {
    const bool is_split = p.batch % more == 0 && p.batch / more * panels * p.groups >= kGroups;
    if (is_split) images = more;
  }
  return images;
}

// How a plane is shared out: blocks of one size, whole rows of tiles, of which the last moves
// inwards, in tiles.
struct Blocks {
  int64_t pixels, count;
};
Blocks blocks_of(const Problem& p, const ConvTile& tile, int64_t row, int64_t panels) {
  constexpr int64_t kShort = 48, kMost = 144, kGroups = 32;
  const int64_t most = kMost / tile.broadcast * tile.broadcast, all = p.pixels();
  const int64_t parts = p.batch * p.groups * panels;
  Blocks best{all, 1};
  int64_t least = 0;
  for (int64_t count = ceil_div(all, most); count <= ceil_div(all, kShort); ++count) {
    const int64_t pixels = ceil_div(all, count * row) * row,
                  tiles = count * ceil_div(pixels, tile.broadcast);
    if (pixels > all) continue;
    // A block reads all weights, which is the work of some pixels.
    const int64_t work = tiles * tile.broadcast + count;
    const bool is_first = least == 0, is_few = best.count * parts < kGroups;
    if (is_first || is_few || work < least) best = {pixels, ceil_div(all, pixels)}, least = work;
  }
  return best;
}

Operand pack_channels(Recorder& recorder, Workspace& scratch, const Problem& p, int64_t width,
                      const Operand& unused) {
  const int64_t count = width * p.groups;
  if (!p.terms.parts.has_bias && !p.terms.parts.has_scale) {
    return {unused.slot, DType::kF32, {count, 3}, {0, 0}, {}};
  }
  const Operand channels{scratch.add_floats(3 * count), DType::kF32, {count, 3}, {1, count}, {}};
  recorder.call(
      "conv_channels", DeviceClass::kCpu,
      {number(p.lanes), number(width), p.terms.bias, p.terms.scale, p.terms.shift, channels});
  return channels;
}

// Taps of a chunk: their weights, 64 lanes wide, stay in the second level cache. On an Emerald
// Rapids 288 are 1.03 times slower; on a Zen 3, of 16 lanes, 1.1 times slower than 512. One tap is
// summed in one chain, as the products of conv_products.cpp are.
struct Chunk {
  int64_t width, height, channels;
};
Chunk chunk_of(const Problem& p) {
  const int64_t most = has_wide_registers() ? kTilesTaps : 512;
  Chunk chunk{1, 1, std::max<int64_t>(1, p.channels)};
  if (p.kernel_h == 1 && p.kernel_w == 1) return chunk;
  chunk.width = std::clamp<int64_t>(p.kernel_w, 1, most);
  chunk.height = std::clamp<int64_t>(most / chunk.width, 1, std::max<int64_t>(1, p.kernel_h));
  const int64_t taps = chunk.width * chunk.height;
  if (chunk.width < p.kernel_w) chunk.height = 1;
  const bool is_whole = taps == p.kernel_w * p.kernel_h;
  chunk.channels =
      is_whole ? std::clamp<int64_t>(most / taps, 1, std::max<int64_t>(1, p.channels)) : 1;
  return chunk;
}

// (pixel, lane, group, n) as (pixel, lane, group, image of a block, block).
Operand with_images(Operand out, int64_t images) {
  const int64_t n = out.extents[3], stride = out.strides[3];
  out.extents[3] = images, out.extents.push_back(n / images);
  out.strides.push_back(images * stride);
  return out;
}

// The tile, how many of its pixels lie side by side, and how long rows of results are for it: of
// windows of a pixel without strides, the plane.
struct TileOfRows {
  ConvTile tile;
  int64_t row, width;
};
TileOfRows tile_of(const Problem& p) {
  const bool are_points = p.kernel_h == 1 && p.kernel_w == 1 && p.stride_h == 1 &&
                          p.stride_w == 1 && p.in.pitch == p.out_w && p.in.plane == p.pixels();
  if (are_points && has_tiles_of_points(p.lanes, p.pixels())) {
    return {kTileOfPoints, kRowOfPoints, p.pixels()};
  }
  ConvTile tile = choose_conv_tile(p.lanes, p.pixels());
  // Pointers to twelve pixels and to two vectors of weights do not fit into registers.
  if (tile.vectors == 2) tile.broadcast = 8;
  const int64_t row = row_of_tile(p.lanes, p.out_h, p.out_w, p.stride_w);
  if (row > 1) tile = {2 * row, 1, tile.fma_ns};
  return {tile, row, p.out_w};
}

void record(Recorder& recorder, Workspace& scratch, const Problem& p) {
  const auto [tile, row, width] = tile_of(p);
  const PackedPanels packed = pack_panels(recorder, scratch, tile, p.weights, p.order);
  const int64_t panels = packed.panels;
  const Operand& weights = packed.operand;
  const Operand channels = pack_channels(recorder, scratch, p, panels * tile.lanes(), weights);
  const int64_t images = images_of_block(p, panels);
  const Blocks blocks =
      images > 1 ? Blocks{images * p.pixels(), 1} : blocks_of(p, tile, row, panels);
  const Operand in{p.in.slot,
                   DType::kF32,
                   {images * p.in.image, row, p.in.plane * p.channels, p.groups, p.batch / images},
                   {1, 1, 1, p.in.plane * p.channels, images * p.in.image},
                   {-p.first_place, 0, 0, 0, 0}};
  const Operand out = with_images(p.out, images);
  const Chunk chunk = chunk_of(p);
  const std::string kernel = fmt::format("conv_tiles_{}x{}{}", tile.broadcast, tile.vectors,
                                         p.pixels() >= kLanes ? "" : "_strided");
  recorder.call(kernel, DeviceClass::kCpu,
                {number(p.stride_h),
                 number(p.stride_w),
                 number(p.dilation_h * p.in.pitch),
                 number(p.dilation_w),
                 number(p.in.pitch),
                 number(p.in.plane),
                 number(width),
                 number(p.kernel_h),
                 number(p.kernel_w),
                 number(p.channels),
                 number(panels),
                 number(blocks.count),
                 number(blocks.pixels),
                 number(images),
                 number(p.in.image),
                 number(chunk.width),
                 number(chunk.height),
                 number(chunk.channels),
                 in,
                 weights,
                 channels,
                 p.terms.residual(out),
                 number(p.terms.parts.has_bias),
                 number(p.terms.parts.has_scale),
                 number(p.terms.parts.has_residual),
                 number(p.terms.parts.has_relu),
                 out});
}

// Dense [batch, groups * channels, plane] as (pixel, channel, group, n).
Operand planes(uint32_t slot, int64_t batch, int64_t groups, int64_t channels, int64_t plane) {
  return {slot,
          DType::kF32,
          {plane, channels, groups, batch},
          {1, plane, channels * plane, groups * channels * plane},
          {}};
}

Problem problem_of(const ConvConfig& c, const EpilogueOperands& terms) {
  Problem p{terms};
  p.batch = c.batch, p.groups = c.groups;
  p.kernel_h = c.kernel_h, p.kernel_w = c.kernel_w;
  p.dilation_h = c.dilation_h, p.dilation_w = c.dilation_w;
  return p;
}

// The weights, in slot 1, as (input channel of a group, kx, ky, output channel of a group, group).
// Of windows of 8 taps and more they are turned first, so that packing them reads whole vectors of
// channels: dx of 3x3 in groups of 16 channels of 8x256x28x28 on a Zen 4 4.1 to 3.05 ms, of 5x5
// from 64 to 48 of 4x35x35 3.8 to 3.55.
Operand turned_weights(Recorder& recorder, Workspace& scratch, const ConvConfig& c) {
  constexpr int64_t kLeastTaps = 8;
  const int64_t lanes = group_inputs(c), channels = group_outputs(c),
                taps = c.kernel_h * c.kernel_w, windows = lanes * taps;
  const std::vector<int64_t> extents = {lanes, c.kernel_w, c.kernel_h, channels, c.groups};
  if (taps < kLeastTaps || lanes % kLanes != 0) {
    return {1, DType::kF32, extents, {taps, 1, c.kernel_w, windows, channels * windows}, {}};
  }
  const uint32_t turned = scratch.add_floats(c.out_channels * windows);
  record_copy(recorder, DeviceClass::kCpu, sizeof(float), {c.out_channels, taps, lanes},
              {1, 0, {windows, 1, taps}}, dense_view(turned, {c.out_channels, taps, lanes}));
  return {turned,
          DType::kF32,
          extents,
          {1, lanes, c.kernel_w * lanes, windows, channels * windows},
          {}};
}

}  // namespace

int64_t row_of_tile(int64_t channels, int64_t out_h, int64_t out_w, int64_t stride_w) {
  if (!has_wide_registers() || channels > kLanes || stride_w != 1) return 1;
  if (out_h * out_w < kLanes) return 1;
  for (int64_t row : {14, 12, 10, 8}) {
    if (out_w % row == 0) return row;
  }
  return 1;
}

bool has_tiles_of_points(int64_t channels, int64_t pixels) {
  // Of planes of up to half a block's pixels there may be several.
  const bool are_rows = pixels % kRowOfPoints == 0 || 2 * pixels > kTilesPixels;
  return has_wide_registers() && fills_tiles(channels, kTileOfPoints.lanes()) && pixels >= kLanes &&
         are_rows;
}

Plan plan_conv2d_tiles(const ConvConfig& c, const ConvEpilogue& e) {
  Problem p = problem_of(c, {e, {c.out_channels}});
  const int64_t lanes = c.out_channels / c.groups, channels = c.in_channels / c.groups,
                taps = c.kernel_h * c.kernel_w;
  p.channels = channels, p.lanes = lanes;
  p.out_h = c.out_h(), p.out_w = c.out_w();
  p.stride_h = c.stride_h, p.stride_w = c.stride_w;
  p.weights = {1,
               DType::kF32,
               {lanes, c.kernel_w, c.kernel_h, channels, c.groups},
               {channels * taps, 1, c.kernel_w, taps, lanes * channels * taps},
               {}};
  p.out = planes(p.terms.out, c.batch, c.groups, lanes, p.out_h * p.out_w);

  Recorder recorder(kDirectAccess);
  Workspace scratch(p.terms.out + 1);
  p.in = pad_input(recorder, scratch, 0, c);
  record(recorder, scratch, p);
  return recorder.finish(scratch);
}

Plan plan_conv2d_input_grad_tiles(const ConvConfig& c) {
  Problem p = problem_of(c, {{}, {c.in_channels}});
  const int64_t lanes = group_inputs(c);
  p.channels = group_outputs(c), p.lanes = lanes;
  p.out_h = c.height, p.out_w = c.width;
  p.stride_h = p.stride_w = 1;
  p.order = {c.kernel_w - 1, -1, c.kernel_h - 1, -1};
  p.out = planes(2, c.batch, c.groups, lanes, c.height * c.width);

  Recorder recorder(kDirectAccess);
  Workspace scratch(3);
  p.weights = turned_weights(recorder, scratch, c);
  p.in = pad_gradient(recorder, scratch, 0, c);
  record(recorder, scratch, p);
  return recorder.finish(scratch);
}

namespace {

Plan plan_phases(const ConvConfig& c, const Phases& rows, const Phases& columns) {
  const int64_t lanes = group_inputs(c);
  Problem p = problem_of(c, {{}, {c.in_channels}});
  p.channels = c.out_channels / c.groups, p.lanes = lanes;
  p.out_h = c.height / c.stride_h, p.out_w = c.width / c.stride_w;
  p.stride_h = p.stride_w = 1;
  Recorder recorder(kDirectAccess);
  Workspace scratch(3);
  p.in = pad_gradient(recorder, scratch, 0, c, rows.before, columns.before, rows.extent,
                      columns.extent);
  constexpr int64_t kAligned = kRegionAlignment / sizeof(float);
  const int64_t distance = ceil_div(c.batch * c.in_channels * p.pixels(), kAligned) * kAligned;
  const Operand weights = turned_weights(recorder, scratch, c);
  const uint32_t phases = scratch.add_floats(distance * c.stride_h * c.stride_w);
  uint64_t offset = scratch.regions().back().offset;
  for (const Phase& row : rows.all) {
    for (const Phase& column : columns.all) {
      p.kernel_h = row.count, p.kernel_w = column.count;
      p.first_place = rows.begin(row) * p.in.pitch + columns.begin(column);
      // Backwards, as dx takes dy.
      p.order = {column.last(c.stride_w), -c.stride_w, row.last(c.stride_h), -c.stride_h};
      p.weights = weights;
      p.weights.extents[1] = p.kernel_w, p.weights.extents[2] = p.kernel_h;
      const uint32_t slot = scratch.add_part(offset, distance * sizeof(float));
      p.out = planes(slot, c.batch, c.groups, lanes, p.pixels());
      record(recorder, scratch, p);
      offset += distance * sizeof(float);
    }
  }
  weave_phases(recorder, c,
               {phases,
                DType::kF32,
                {p.out_w, p.out_h, c.stride_w, c.stride_h, c.batch * c.in_channels},
                {1, p.out_w, distance, distance * c.stride_w, p.pixels()},
                {}});
  return recorder.finish(scratch);
}

}  // namespace

Plan plan_conv2d_input_grad_strided(const ConvConfig& c) {
  const Phases rows(c.top, c.kernel_h, c.stride_h, c.height / c.stride_h),
      columns(c.left, c.kernel_w, c.stride_w, c.width / c.stride_w);
  // Of fewer lanes most would be empty: 3 to 64 channels of 4x227x227, 11x11 four apart, on a Zen 4
  // 16.6 to 8.8 ms.
  constexpr int64_t kLeastLanes = 4;
  const bool has_phases = !rows.has_empty && !columns.has_empty;
  if (has_phases && c.in_channels / c.groups >= kLeastLanes) return plan_phases(c, rows, columns);
  const int64_t channels = c.in_channels / c.groups, taps = c.kernel_h * c.kernel_w;
  const int64_t out_h = c.out_h(), out_w = c.out_w(), plane = out_h * out_w;
  Problem p{{{}, {c.in_channels * taps}}};
  p.batch = c.batch, p.groups = c.groups;
  p.channels = c.out_channels / c.groups, p.lanes = channels * taps;
  p.out_h = out_h, p.out_w = out_w;
  p.kernel_h = p.kernel_w = p.stride_h = p.stride_w = p.dilation_h = p.dilation_w = 1;
  p.weights = {1,
               DType::kF32,
               {p.lanes, 1, 1, p.channels, c.groups},
               {1, 0, 0, p.lanes, p.channels * p.lanes},
               {}};
  p.in = {0, out_w, plane, c.out_channels * plane};

  Recorder recorder(kDirectAccess);
  Workspace scratch(3);
  const int64_t planes_count = c.batch * c.in_channels;
  p.out =
      planes(scratch.add_floats(planes_count * taps * plane), c.batch, c.groups, p.lanes, plane);
  record(recorder, scratch, p);
  const int64_t across = c.width / c.stride_w, down = c.height / c.stride_h;
  recorder.call("conv_gather", DeviceClass::kCpu,
                {number(c.top), number(c.left), number(c.stride_h), number(c.stride_w),
                 number(ceil_div(c.kernel_h, c.stride_h)), number(ceil_div(c.kernel_w, c.stride_w)),
                 Operand{p.out.slot,
                         DType::kF32,
                         {out_w, out_h, c.kernel_w, c.kernel_h, planes_count},
                         {1, out_w, plane, plane * c.kernel_w, plane * taps},
                         {}},
                 Operand{2,
                         DType::kF32,
                         {across, c.stride_w, down, c.stride_h, planes_count},
                         {c.stride_w, 1, c.stride_h * c.width, c.width, c.height * c.width},
                         {}}});
  return recorder.finish(scratch);
}

}  // namespace ballast::kernels
