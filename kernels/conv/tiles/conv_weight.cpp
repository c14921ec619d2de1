#include "kernels/conv/tiles/conv_weight.h"

#include "kernels/conv/conv_arguments.h"
#include "kernels/conv/conv_operands.h"
#include "kernels/conv/products/conv_products.h"
#include "kernels/plan/plan_builder.h"
#include "kernels/plan/registers.h"
#include "kernels/recipe/lanes.h"
#include "kernels/shape/shape.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

namespace ballast::kernels {
namespace {

// How the rows of pixels, and the tiles of taps, are shared out.
struct Split {
  int64_t rows_per_chunk, chunks, blocks, tiles_per_group;
};

// A chunk's share of dy stays in the second level cache, and there are groups enough for the cores.
Split split_rows(int64_t rows, int64_t width, int64_t tiles, int64_t panels, int64_t lanes) {
  constexpr int64_t kGroups = 16;
  const int64_t fitting = kWeightChunkBytes / (4 * lanes * std::max<int64_t>(1, width));
  Split split;
  const int64_t most = std::min<int64_t>(std::max<int64_t>(1, rows), kWeightRows);
  split.rows_per_chunk = std::clamp<int64_t>(fitting, 1, most);
  split.chunks = ceil_div(rows, split.rows_per_chunk);
  split.rows_per_chunk = ceil_div(rows, std::max<int64_t>(1, split.chunks));
  split.blocks = std::clamp<int64_t>(kGroups / (split.chunks * panels + 1), 1, tiles);
  split.tiles_per_group = ceil_div(tiles, split.blocks);
  return split;
}

// (pixel, channel, group, n) of dy in slot 0.
Operand gradient_planes(const ConvConfig& c) {
  const int64_t pixels = c.out_h() * c.out_w(), channels = c.out_channels / c.groups;
  return {0,
          DType::kF32,
          {pixels, channels, c.groups, c.batch},
          {1, pixels, channels * pixels, c.out_channels * pixels},
          {}};
}

// The same convolution with as many rows as possible as one, of which a chunk can still be some:
// finding a row takes as long as some of its pixels.
ConvConfig with_long_rows(const ConvConfig& c) {
  constexpr int64_t kMostLanes = 64;
  if (!reads_pixels_in_order(c)) return c;
  const int64_t most = kWeightChunkBytes / (4 * kMostLanes) / std::max<int64_t>(1, c.width);
  int64_t merged = std::clamp<int64_t>(most, 1, std::max<int64_t>(1, c.height));
  while (merged > 1 && c.height % merged != 0) --merged;
  ConvConfig longer = c;
  longer.height /= merged, longer.width *= merged;
  return longer;
}

ConvConfig swapped(const ConvConfig& c) {
  ConvConfig other = c;
  std::swap(other.in_channels, other.out_channels);
  return other;
}

}  // namespace

// On a Zen 4, 64 to 256 channels of 8x56x56, which a product packs, 4.25 to 3.95 ms, 16 to 96 of
// 2x112x112 0.48 to 0.37. Few channels of many pixels need not fill a tile: on an Emerald Rapids 24
// to 144 of 4x112x112 3.8 to 2.3, 24 to 72 of 8x56x56 1.1 to 0.75, 40 to 120 2.5 to 1.65.
bool is_swapped_weight_grad(const ConvConfig& c) {
  constexpr int64_t kFewChannels = 48, kManyPixels = 1024;
  const int64_t channels = c.in_channels, pixels = c.height * c.width;
  if (!has_wide_registers() || !reads_pixels_in_order(c) || c.groups > 1) return false;
  const int64_t lanes = choose_conv_tile(channels, c.out_channels).lanes();
  const int64_t computed = ceil_div(channels, lanes) * lanes;
  const bool fills = channels < kFewChannels ? pixels >= kManyPixels && 4 * channels >= 3 * computed
                                             : channels == computed;
  return fills && channels < c.out_channels;
}

Plan plan_conv2d_weight_grad_swapped(const ConvConfig& c) {
  PlanBuilder builder(3);
  const uint32_t other = builder.add_floats(elements_of(w_shape(c)));
  builder.append(plan_conv2d_weight_grad_tiles(swapped(c)), {1, 0, other});
  builder.append(plan_copy(DeviceClass::kCpu, DType::kF32, {c.out_channels, c.in_channels},
                           {1, c.out_channels}),
                 {other, 2});
  return builder.finish();
}

Plan plan_conv2d_weight_grad_tiles(const ConvConfig& config) {
  const ConvConfig c = with_long_rows(config);
  const int64_t lanes = c.out_channels / c.groups, channels = c.in_channels / c.groups;
  const int64_t out_h = c.out_h(), out_w = c.out_w();
  const int64_t taps = channels * c.kernel_h * c.kernel_w, rows = c.batch * out_h;
  Recorder recorder(kDirectAccess);
  Workspace scratch(3);

  const PaddedPlanes in = pad_input(recorder, scratch, 1, c);
  const ConvTile& tile = choose_conv_tile(lanes, taps);
  const int64_t tiles = ceil_div(taps, tile.broadcast), padded_taps = tiles * tile.broadcast;
  const int64_t panels_of_group = ceil_div(lanes, tile.lanes()),
                panels = panels_of_group * c.groups;
  const Split split = split_rows(rows, out_w, tiles, panels, tile.lanes());
  // What one work-group alone reads it packs by itself.
  const bool packs = split.blocks == 1 && out_w >= kLanes &&
                     4 * split.rows_per_chunk * out_w * tile.lanes() <= kWeightChunkBytes;
  const Operand dy = packs ? gradient_planes(c) : pack_gradient(recorder, scratch, tile, c).operand;
  const Operand dw{2, DType::kF32, {taps, lanes, c.groups}, {1, taps, taps * lanes}, {}};
  const int64_t block_taps = std::lcm(tile.broadcast, int64_t{kLanes});
  const bool is_whole = packs && split.chunks == 1 && taps >= block_taps;
  const Operand planes{in.slot,
                       DType::kF32,
                       {channels * in.plane, c.groups, c.batch},
                       {1, channels * in.plane, in.image},
                       {}};
  // `last`: what only this kind has.
  const auto call_tiles = [&](const char* kind, std::vector<HostArg> last) {
    const std::string kernel = fmt::format("conv_weight_{}_{}x{}{}", kind, tile.broadcast,
                                           tile.vectors, packs ? "_packing" : "");
    last.insert(last.begin(),
                {number(c.stride_h), number(c.stride_w), number(c.dilation_h * in.pitch),
                 number(c.dilation_w), number(in.pitch), number(in.plane), number(c.kernel_h),
                 number(c.kernel_w), number(out_w), number(out_h), number(taps), number(rows),
                 number(panels_of_group), number(split.rows_per_chunk), planes, dy});
    recorder.call(kernel, DeviceClass::kCpu, last);
  };
  if (is_whole) {
    call_tiles("whole", {dw});
    return recorder.finish(scratch);
  }
  const int64_t panel_elements = padded_taps * tile.lanes();
  const Operand sums{scratch.add_floats(panel_elements * panels * split.chunks),
                     DType::kF32,
                     {kLanes, tile.vectors, padded_taps, panels, split.chunks},
                     {1, kLanes, tile.lanes(), panel_elements, panel_elements * panels},
                     {}};
  call_tiles("tiles", {number(split.tiles_per_group), sums});
  recorder.call("conv_weight_sum", DeviceClass::kCpu,
                {number(panels_of_group), number(tile.vectors), sums, dw});
  return recorder.finish(scratch);
}

}  // namespace ballast::kernels
