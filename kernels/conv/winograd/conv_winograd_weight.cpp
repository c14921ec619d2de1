#include "kernels/conv/winograd/conv_winograd_weight.h"

#include "kernels/conv/conv_arguments.h"
#include "kernels/conv/conv_operands.h"
#include "kernels/conv/winograd/conv_winograd.h"
#include "kernels/lanes.h"

#include <fmt/format.h>

#include <algorithm>

namespace ballast::kernels {
namespace {

constexpr int64_t kSide = 2, kElements = 16, kTaps = 9;

// How the work is cut: `rows` of tiles of `samples` are a block, of which there are `blocks`;
// input channels lie in `channel_blocks` of `channels` each.
struct Cut {
  ConvTile tile;
  int64_t rows = 0, samples, blocks, channels, channel_blocks, panels, tiles;
  double cycles;  // per sample
};

Cut cut_blocks(const ConvConfig& c, const ConvTile& tile, int64_t rows, int64_t samples) {
  const int64_t inputs = c.in_channels / c.groups, outputs = c.out_channels / c.groups;
  const int64_t all_rows = ceil_div(c.out_h(), kSide), columns = ceil_div(c.out_w(), kSide);
  Cut cut{tile, rows, samples, ceil_div(all_rows, rows) * ceil_div(c.batch, samples)};
  const int64_t most = kWinogradChannels / tile.broadcast * tile.broadcast;
  cut.channel_blocks = ceil_div(inputs, most);
  cut.channels = ceil_div(ceil_div(inputs, cut.channel_blocks), tile.broadcast) * tile.broadcast;
  cut.channel_blocks = ceil_div(inputs, cut.channels);
  cut.panels = ceil_div(outputs, tile.lanes());
  cut.tiles = rows * samples * columns;
  // Measured on a Zen 4, which does one multiply-add of 16 lanes a cycle. Pixels: turning them.
  constexpr double kOfInput = 80, kOfGradient = 60, kOfPixel = 7, kOfSum = 4;
  const double vectors = double(tile.vectors), inputs_of_block = double(cut.channels),
               input_vectors = double(ceil_div(cut.channels, kLanes));
  const double blocks = double(cut.blocks) / double(c.batch), tiles = double(all_rows * columns);
  const double read = blocks * double(samples * (2 * rows + 2) * c.width),
               given = double(c.out_h() * c.out_w());
  const double transforms = input_vectors * (tiles * kOfInput + read * kOfPixel) +
                            vectors * (tiles * kOfGradient + given * kOfPixel);
  const double products = double(kElements) * inputs_of_block * vectors * (tiles + blocks * kOfSum);
  cut.cycles = (transforms + products) * double(cut.channel_blocks * cut.panels);
  return cut;
}

// The way that takes the least time; none where nothing fits.
Cut cut_problem(const ConvConfig& c) {
  // Of the sums and of the transforms: what stays in the second cache beside all that passes.
  constexpr int64_t kMostBytes = 600 << 10;
  const ConvTile tile = winograd_tiles().front();
  const int64_t all_rows = ceil_div(c.out_h(), kSide);
  Cut best{};
  for (int64_t rows = 1; rows <= all_rows; ++rows) {
    for (int64_t samples = 1; samples <= (rows < all_rows ? 1 : c.batch); ++samples) {
      const Cut cut = cut_blocks(c, tile, rows, samples);
      if (cut.tiles > kWinogradTiles || !fits_places(c.out_w(), c.width, rows, samples)) break;
      const int64_t floats = cut.channels * tile.lanes() +
                             cut.tiles * (tile.lanes() + ceil_div(cut.channels, kLanes) * kLanes);
      if (best.rows > 0 && 4 * kElements * floats > kMostBytes) break;
      if (best.rows == 0 || cut.cycles < best.cycles) best = cut;
    }
  }
  return best;
}

// (pixel, channel, group, n)
Operand planes_of(uint32_t slot, const ConvConfig& c, int64_t all_channels, int64_t pixels) {
  const int64_t channels = all_channels / c.groups;
  return {slot,
          DType::kF32,
          {pixels, channels, c.groups, c.batch},
          {1, pixels, channels * pixels, all_channels * pixels},
          {}};
}

// Planes are read in whole vectors.
bool has_vectors(const ConvConfig& c) {
  return c.height * c.width >= kLanes && c.out_h() * c.out_w() >= kLanes;
}

}  // namespace

bool fits_places(int64_t out_w, int64_t in_w, int64_t rows, int64_t samples) {
  const int64_t columns = kSide * (ceil_div(out_w, kSide) + 1);
  return samples * (kSide * (rows + 1) * std::max(columns, in_w) + kLanes) + 2 * kLanes <=
         kWinogradPlaces;
}

bool is_winograd_weight_grad(const ConvConfig& c) {
  if (!has_winograd_window(c) || !has_vectors(c)) return false;
  const Cut cut = cut_problem(c);
  return cut.rows > 0 && is_winograd_faster(cut.cycles, c);
}

Plan plan_conv2d_weight_grad_winograd(const ConvConfig& c) {
  const int64_t inputs = c.in_channels / c.groups, outputs = c.out_channels / c.groups;
  const Cut cut = cut_problem(c);
  const ConvTile& tile = cut.tile;
  Recorder recorder(kDirectAccess);
  Workspace scratch(3);

  const int64_t panels = cut.panels * c.groups;
  constexpr int64_t kGroups = 8;
  const int64_t wanted =
      std::clamp<int64_t>(ceil_div(kGroups, panels * cut.channel_blocks), 1, cut.blocks);
  const int64_t blocks_per_chunk = ceil_div(cut.blocks, wanted),
                chunks = ceil_div(cut.blocks, blocks_per_chunk);
  const int64_t lanes = tile.lanes(), of_block = cut.channels * kTaps * lanes,
                of_panel = cut.channel_blocks * of_block;
  const uint32_t shares = scratch.add_floats(of_panel * panels * chunks);
  recorder.call(
      fmt::format("conv_winograd_weight_{}x{}", tile.broadcast, tile.vectors), DeviceClass::kCpu,
      {number(c.top), number(c.left), number(c.width), number(c.out_w()), number(c.out_h()),
       number(cut.rows), number(cut.samples), number(cut.panels), number(cut.blocks),
       number(blocks_per_chunk), planes_of(1, c, c.in_channels, c.height * c.width),
       planes_of(0, c, c.out_channels, c.out_h() * c.out_w()),
       Operand{shares,
               DType::kF32,
               {kLanes, tile.vectors, kTaps, cut.channels, cut.channel_blocks, panels, chunks},
               {1, kLanes, lanes, kTaps * lanes, of_block, of_panel, of_panel * panels},
               {}}});
  const int64_t taps = inputs * kTaps;
  recorder.call(
      "conv_weight_sum", DeviceClass::kCpu,
      {number(cut.panels), number(tile.vectors),
       Operand{shares,
               DType::kF32,
               {kLanes, tile.vectors, cut.channels * cut.channel_blocks * kTaps, panels, chunks},
               {1, kLanes, lanes, of_panel, of_panel * panels},
               {}},
       Operand{2, DType::kF32, {taps, outputs, c.groups}, {1, taps, taps * outputs}, {}}});
  return recorder.finish(scratch);
}

}  // namespace ballast::kernels
