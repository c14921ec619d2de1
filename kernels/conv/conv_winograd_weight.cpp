#include "kernels/conv/conv_winograd_weight.h"

#include "kernels/conv/conv_arguments.h"
#include "kernels/conv/conv_operands.h"
#include "kernels/conv/conv_winograd.h"
#include "kernels/lanes.h"

#include <fmt/format.h>

#include <algorithm>

namespace ballast::kernels {
namespace {

constexpr int64_t kSide = 2, kElements = 16, kTaps = 9;

// How the work is cut: `rows` of tiles are a block, of which a sample has `row_blocks`; input
// channels lie in `channel_blocks` of `channels` each.
struct Cut {
  ConvTile tile;
  int64_t rows = 0, row_blocks, channels, channel_blocks, panels, vectors_of_row;
  double cycles;  // per sample
};

Cut cut_rows(const ConvConfig& c, const ConvTile& tile, int64_t rows) {
  const int64_t inputs = c.in_channels / c.groups, outputs = c.out_channels / c.groups;
  const int64_t columns = ceil_div(c.out_w(), kSide);
  Cut cut{tile, rows, ceil_div(ceil_div(c.out_h(), kSide), rows)};
  const int64_t most = kWinogradChannels / tile.broadcast * tile.broadcast;
  cut.channel_blocks = ceil_div(inputs, most);
  cut.channels = ceil_div(ceil_div(inputs, cut.channel_blocks), tile.broadcast) * tile.broadcast;
  cut.channel_blocks = ceil_div(inputs, cut.channels);
  cut.panels = ceil_div(outputs, tile.lanes());
  cut.vectors_of_row = ceil_div(columns, kLanes);
  // Measured on a Zen 4, which does one multiply-add of 16 lanes a cycle.
  constexpr double kOfInput = 100, kOfGradient = 70, kOfSum = 4;
  const double tiles = double(rows * columns), channels = double(cut.channels),
               vectors = double(tile.vectors);
  const double input = double(rows * cut.vectors_of_row) * channels * kOfInput;
  const double block = input + tiles * vectors * kOfGradient +
                       double(kElements) * channels * vectors * (tiles + kOfSum);
  cut.cycles = block * double(cut.row_blocks * cut.channel_blocks * cut.panels);
  return cut;
}

// The way that takes the least time; none where nothing fits.
Cut cut_problem(const ConvConfig& c) {
  // Of the sums and of the transforms: what stays in the second cache beside all that passes.
  constexpr int64_t kMostBytes = 600 << 10;
  const int64_t columns = ceil_div(c.out_w(), kSide);
  const ConvTile tile = winograd_tiles().front();
  Cut best{};
  for (int64_t rows = 1; rows <= ceil_div(c.out_h(), kSide); ++rows) {
    const Cut cut = cut_rows(c, tile, rows);
    const int64_t spread = (rows * cut.vectors_of_row * cut.channels + 1) * kLanes * kElements;
    if (rows * columns > kWinogradTiles || spread > kWinogradSpread) break;
    const int64_t of_lanes = kElements * (cut.channels + rows * columns);
    if (rows > 1 && 4 * (spread + of_lanes * tile.lanes()) > kMostBytes) break;
    if (best.rows == 0 || cut.cycles < best.cycles) best = cut;
  }
  return best;
}

}  // namespace

bool is_winograd_weight_grad(const ConvConfig& c) {
  if (!has_winograd_window(c)) return false;
  const Cut cut = cut_problem(c);
  return cut.rows > 0 && is_winograd_faster(cut.cycles, c);
}

Plan plan_conv2d_weight_grad_winograd(const ConvConfig& c) {
  const int64_t inputs = c.in_channels / c.groups, outputs = c.out_channels / c.groups;
  const int64_t out_h = c.out_h(), out_w = c.out_w(), pixels = out_h * out_w;
  const Cut cut = cut_problem(c);
  const ConvTile& tile = cut.tile;
  Recorder recorder(kDirectAccess);
  Workspace scratch(3);

  // Whole vectors of tiles, and whole blocks of their rows.
  const PaddedPlanes in = pad_input(recorder, scratch, 1, c, kSide * cut.row_blocks * cut.rows + 2,
                                    kSide * cut.vectors_of_row * kLanes + 2);
  const PackedPanels dy = pack_gradient(recorder, scratch, tile, c);
  const int64_t panels = cut.panels * c.groups, blocks = c.batch * cut.row_blocks;
  constexpr int64_t kGroups = 8;
  const int64_t wanted =
      std::clamp<int64_t>(ceil_div(kGroups, panels * cut.channel_blocks), 1, blocks);
  const int64_t blocks_per_chunk = ceil_div(blocks, wanted),
                chunks = ceil_div(blocks, blocks_per_chunk);
  const int64_t lanes = tile.lanes(), of_block = cut.channels * kTaps * lanes,
                of_panel = cut.channel_blocks * of_block;
  const uint32_t shares = scratch.add_floats(of_panel * panels * chunks);
  recorder.call(
      fmt::format("conv_winograd_weight_{}x{}", tile.broadcast, tile.vectors), DeviceClass::kCpu,
      {number(in.pitch), number(in.plane), number(out_w), number(out_h), number(cut.rows),
       number(inputs), number(cut.panels), number(cut.row_blocks), number(blocks),
       number(blocks_per_chunk),
       Operand{in.slot,
               DType::kF32,
               {inputs * in.plane, c.groups, c.batch},
               {1, inputs * in.plane, in.image},
               {}},
       dy.operand,
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
