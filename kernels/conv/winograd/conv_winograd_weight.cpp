#include "kernels/conv/winograd/conv_winograd_weight.h"

#include "kernels/conv/conv_arguments.h"
#include "kernels/conv/conv_operands.h"
#include "kernels/conv/winograd/conv_winograd.h"
#include "kernels/plan/registers.h"
#include "kernels/recipe/lanes.h"

#include <fmt/format.h>

#include <algorithm>

namespace ballast::kernels {
namespace {

using Form = WinogradForm;

constexpr int64_t kSide = 2;  // of a tile of results

// Rows or columns of pixels that so many tiles read.
int64_t covered(const Form& form, int64_t tiles) {
  return form.step * tiles + form.patch - form.step;
}

// How the work is cut: `rows` of tiles of `samples` are a block, of which there are `blocks`;
// input channels lie in `channel_blocks` of `channels` each.
struct Cut {
  ConvTile tile;
  int64_t rows = 0, samples, blocks, channels, channel_blocks, panels, tiles;
  double cycles;  // per sample
};

// Of at most `most` input channels to a work-group.
Cut cut_blocks(const ConvConfig& c, const ConvTile& tile, int64_t most, int64_t rows,
               int64_t samples) {
  const Form& form = winograd_form_of(c);
  const int64_t inputs = c.in_channels / c.groups, outputs = c.out_channels / c.groups;
  const int64_t all_rows = ceil_div(c.out_h(), kSide), columns = ceil_div(c.out_w(), kSide);
  Cut cut{tile, rows, samples, ceil_div(all_rows, rows) * ceil_div(c.batch, samples)};
  cut.channel_blocks = ceil_div(inputs, most);
  cut.channels = ceil_div(ceil_div(inputs, cut.channel_blocks), tile.broadcast) * tile.broadcast;
  cut.channel_blocks = ceil_div(inputs, cut.channels);
  cut.panels = ceil_div(outputs, tile.lanes());
  cut.tiles = rows * samples * columns;
  // Measured on a Zen 4, which does one multiply-add of 16 lanes a cycle. Pixels: turning them.
  constexpr double kOfInput = 5, kOfGradient = 3.75, kOfPixel = 7, kOfSum = 4;
  const double vectors = double(tile.vectors), inputs_of_block = double(cut.channels),
               input_vectors = double(ceil_div(cut.channels, kLanes));
  const double blocks = double(cut.blocks) / double(c.batch), tiles = double(all_rows * columns);
  const auto elements = double(form.elements());
  const double read = blocks * double(samples * covered(form, rows) * c.width),
               given = double(c.out_h() * c.out_w());
  const double transforms = input_vectors * (tiles * elements * kOfInput + read * kOfPixel) +
                            vectors * (tiles * elements * kOfGradient + given * kOfPixel);
  const double products = elements * inputs_of_block * vectors * (tiles + blocks * kOfSum);
  cut.cycles = (transforms + products) * double(cut.channel_blocks * cut.panels);
  return cut;
}

// The way that takes the least time; none where nothing fits.
Cut cut_problem(const ConvConfig& c) {
  // Of the sums and of the transforms: what stays in the second cache beside all that passes.
  constexpr int64_t kMostBytes = 600 << 10;
  const ConvTile tile = winograd_tiles().front();
  const Form& form = winograd_form_of(c);
  const int64_t all_rows = ceil_div(c.out_h(), kSide);
  Cut best{};
  const int64_t least = has_wide_registers() ? kWinogradChannels / 2 : kWinogradChannels;
  for (int64_t most = kWinogradChannels; most >= least; most -= tile.broadcast) {
    for (int64_t rows = 1; rows <= all_rows; ++rows) {
      for (int64_t samples = 1; samples <= (rows < all_rows ? 1 : c.batch); ++samples) {
        const Cut cut = cut_blocks(c, tile, most, rows, samples);
        if (cut.tiles > form.most_tiles) break;
        if (!fits_places(form, c.out_w(), c.width, rows, samples)) break;
        const int64_t floats = cut.channels * tile.lanes() +
                               cut.tiles * (tile.lanes() + ceil_div(cut.channels, kLanes) * kLanes);
        if (best.rows > 0 && 4 * form.elements() * floats > kMostBytes) break;
        if (best.rows == 0 || cut.cycles < best.cycles) best = cut;
      }
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

bool fits_places(const WinogradForm& form, int64_t out_w, int64_t in_w, int64_t rows,
                 int64_t samples) {
  const int64_t columns = covered(form, ceil_div(out_w, kSide));
  return samples * (covered(form, rows) * std::max(columns, in_w) + kLanes) + 2 * kLanes <=
         kWinogradPlaces;
}

bool is_winograd_weight_grad(const ConvConfig& c) {
  if (!has_winograd_form(c) || !has_vectors(c)) return false;
  const Cut cut = cut_problem(c);
  return cut.rows > 0 && is_winograd_faster(cut.cycles, c);
}

Plan plan_conv2d_weight_grad_winograd(const ConvConfig& c) {
  const int64_t inputs = c.in_channels / c.groups, outputs = c.out_channels / c.groups;
  const Cut cut = cut_problem(c);
  const ConvTile& tile = cut.tile;
  const Form& form = winograd_form_of(c);
  const int64_t window = form.window * form.window;
  Recorder recorder(kDirectAccess);
  Workspace scratch(3);

  const int64_t panels = cut.panels * c.groups;
  constexpr int64_t kGroups = 8;
  const int64_t wanted =
      std::clamp<int64_t>(ceil_div(kGroups, panels * cut.channel_blocks), 1, cut.blocks);
  const int64_t blocks_per_chunk = ceil_div(cut.blocks, wanted),
                chunks = ceil_div(cut.blocks, blocks_per_chunk);
  const int64_t lanes = tile.lanes(), of_block = cut.channels * window * lanes,
                of_panel = cut.channel_blocks * of_block;
  const uint32_t shares = scratch.add_floats(of_panel * panels * chunks);
  recorder.call(
      fmt::format("conv_winograd_weight_{}x{}_{}", tile.broadcast, tile.vectors, form.name),
      DeviceClass::kCpu,
      {number(c.top), number(c.left), number(c.width), number(c.out_w()), number(c.out_h()),
       number(cut.rows), number(cut.samples), number(cut.panels), number(cut.blocks),
       number(blocks_per_chunk), planes_of(1, c, c.in_channels, c.height * c.width),
       planes_of(0, c, c.out_channels, c.out_h() * c.out_w()),
       Operand{shares,
               DType::kF32,
               {kLanes, tile.vectors, window, cut.channels, cut.channel_blocks, panels, chunks},
               {1, kLanes, lanes, window * lanes, of_block, of_panel, of_panel * panels},
               {}}});
  const int64_t taps = inputs * window;
  recorder.call(
      "conv_weight_sum", DeviceClass::kCpu,
      {number(cut.panels), number(tile.vectors),
       Operand{shares,
               DType::kF32,
               {kLanes, tile.vectors, cut.channels * cut.channel_blocks * window, panels, chunks},
               {1, kLanes, lanes, of_panel, of_panel * panels},
               {}},
       Operand{2, DType::kF32, {taps, outputs, c.groups}, {1, taps, taps * outputs}, {}}});
  return recorder.finish(scratch);
}

}  // namespace ballast::kernels
