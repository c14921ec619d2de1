#include "kernels/conv/conv_winograd.h"

#include "kernels/conv/conv_arguments.h"
#include "kernels/conv/conv_planes.h"
#include "kernels/conv/conv_problem.h"
#include "kernels/lanes.h"
#include "kernels/registers.h"

#include <algorithm>
#include <vector>

namespace ballast::kernels {
namespace {

constexpr int64_t kSide = 2;                    // of a tile of results
constexpr int64_t kReach = 1;                   // further rows and columns of tiles that it reads
constexpr int64_t kElements = 16, kPhases = 4;  // of its input

// What is kept in registers: sums of tiles by output channels.
struct Tile {
  const char* kernel;
  int64_t tiles, channels;
};
std::vector<Tile> tiles_of_cpu() {
  if (!has_wide_registers()) return {{"conv_winograd_6x1", 6, 16}};
  return {{"conv_winograd_6x4", 6, 64}, {"conv_winograd_12x2", 12, 32}};
}

// How a problem is cut into work-groups: `rows` of tiles, and of a block's channels a part.
struct Cut {
  Tile tile;
  int64_t rows = 0, pitch, plane, tiles, elements, blocks, parts, tiles_per_part, channel_tiles;
  double cycles;  // per sample
};

Cut cut_rows(const ConvProblem& p, const Tile& tile, int64_t pitch, int64_t rows) {
  const int64_t all_rows = ceil_div(p.out_h, kSide), columns = ceil_div(p.out_w, kSide);
  Cut cut{tile, rows, pitch};
  cut.plane = (rows + kReach) * pitch;
  cut.tiles = ceil_div((rows - 1) * pitch + columns, tile.tiles);
  const int64_t spread = ceil_div(cut.tiles * tile.tiles, kLanes) * kLanes;
  const int64_t last = (p.inputs * kPhases - 1) * cut.plane + kReach * pitch + kReach + spread;
  cut.elements = ceil_div(std::max(last, p.inputs * kPhases * cut.plane), kLanes) * kLanes;
  cut.blocks = ceil_div(all_rows, rows);
  cut.channel_tiles = ceil_div(p.outputs, tile.channels);
  // Measured on a Zen 4, which does one multiply-add of 16 lanes a cycle.
  constexpr double kOfVectorCopied = 6, kOfInputTransformed = 64, kOfResult = 60, kOfWeights = 900;
  const double vectors = double(tile.channels) / kLanes, tiles = double(cut.tiles) * tile.tiles;
  const double input = double(cut.elements) / kLanes * kOfVectorCopied +
                       double(spread) / kLanes * p.inputs * kOfInputTransformed;
  const double results = tiles * vectors * (double(kElements) * p.inputs + kOfResult);
  const double weights = double(cut.channel_tiles) * vectors * p.inputs * kOfWeights / p.batch;
  cut.cycles = double(cut.blocks) * (input + double(cut.channel_tiles) * results) + weights;
  return cut;
}

// Results of a block that are written as one, of the last block if there is an odd row.
int64_t shortest_run(const ConvProblem& p, int64_t rows) {
  return (rows * kSide - p.out_h % kSide) * p.out_w;
}

// The way that takes the least time; none where nothing fits.
Cut cut_problem(const ConvProblem& p) {
  const int64_t columns = ceil_div(p.out_w, kSide);
  const int64_t pitch = std::max(columns + kReach, (p.left + p.in_w - 1) / kSide + 1);
  Cut best{};
  for (const Tile& tile : tiles_of_cpu()) {
    if (p.outputs < tile.channels) continue;
    for (int64_t rows = 1; rows <= ceil_div(p.out_h, kSide); ++rows) {
      const Cut cut = cut_rows(p, tile, pitch, rows);
      const int64_t tiles = ceil_div(cut.tiles * tile.tiles, kLanes) * kLanes;
      if (cut.elements > kPlaneElements || std::max(tiles, rows * pitch) > kWinogradTiles ||
          (tiles * p.inputs + kLanes) * kElements > kWinogradSpread) {
        break;
      }
      if (shortest_run(p, rows) < kLanes) continue;
      if (best.rows == 0 || cut.cycles < best.cycles) best = cut;
    }
  }
  if (best.rows == 0) return best;
  constexpr int64_t kGroups = 8;
  best.parts = std::clamp<int64_t>(ceil_div(kGroups, best.blocks * p.batch * p.groups), 1,
                                   best.channel_tiles);
  best.tiles_per_part = ceil_div(best.channel_tiles, best.parts);
  best.parts = ceil_div(best.channel_tiles, best.tiles_per_part);
  return best;
}

bool is_possible(const ConvProblem& p) {
  return p.kernel_h == 3 && p.kernel_w == 3 && p.stride_h == 1 && p.stride_w == 1 &&
         p.dilation_h == 1 && p.dilation_w == 1 && p.top >= 0 && p.left >= 0 &&
         p.inputs >= kLanes && p.in_h > 0 && p.in_w > 0;
}

bool is_taken(const ConvProblem& p) {
  if (!is_possible(p)) return false;
  const Cut cut = cut_problem(p);
  const double direct = double(p.out_h * p.out_w * p.taps()) * p.outputs / kLanes / 0.85;
  return cut.rows > 0 && cut.cycles * 1.2 < direct;
}

// Chunks of one length whose weights take half of the nearest cache.
int64_t chunk_of(const ConvProblem& p, const Tile& tile) {
  constexpr int64_t kMostWeights = 64 * 64;
  return ceil_div(p.inputs, ceil_div(p.inputs * tile.channels, kMostWeights));
}

// x and the weights in slots 0 and 1.
Plan plan_winograd(const ConvProblem& p, const ConvEpilogue& e) {
  const Cut cut = cut_problem(p);
  const Tile& tile = cut.tile;
  const EpilogueOperands terms(e, {p.outputs, p.groups});
  Recorder recorder(kDirectAccess);
  Workspace scratch(terms.out + 1);
  const int64_t taps = p.inputs * kElements, panel = taps * tile.channels;
  const uint32_t packed = scratch.add_floats(p.groups * cut.channel_tiles * panel);
  recorder.call("conv_winograd_weights", DeviceClass::kCpu,
                {number(p.first_tap), number(p.tap_step), weights_operand(1, p),
                 dense_operand(packed, DType::kF32,
                               {p.groups, cut.channel_tiles, kElements, p.inputs, tile.channels})});
  const Operand y = planes_operand(terms.out, p, p.outputs, p.out_h, p.out_w);
  std::vector<HostArg> args;
  constexpr int64_t kDilation = 1;
  for (int64_t value : {kSide, kSide, kDilation, kDilation, p.top, p.left, p.kernel_h + 1,
                        p.kernel_w + 1, cut.pitch, cut.plane, cut.rows, cut.elements, cut.tiles,
                        int64_t{kLanes - 1}, cut.parts, cut.tiles_per_part, chunk_of(p, tile)}) {
    args.push_back(number(value));
  }
  args.insert(args.end(), {planes_operand(0, p, p.inputs, p.in_h, p.in_w),
                           dense_operand(packed, DType::kF32,
                                         {p.groups, cut.channel_tiles, taps, tile.channels})});
  terms.append_to(args, y);
  args.insert(args.end(), {dense_operand(terms.out, DType::kF32,
                                         {p.batch, p.groups, p.outputs, p.out_h * p.out_w}),
                           y});
  recorder.call(tile.kernel, DeviceClass::kCpu, args);
  return recorder.finish(scratch);
}

}  // namespace

bool is_winograd(const ConvConfig& c) { return is_taken(forward_problem(c)); }

bool is_winograd_input_grad(const ConvConfig& c) {
  return c.stride_h == 1 && c.stride_w == 1 && is_taken(input_grad_problem(c));
}

Plan plan_conv2d_winograd(const ConvConfig& c, const ConvEpilogue& e) {
  return plan_winograd(forward_problem(c), e);
}

Plan plan_conv2d_input_grad_winograd(const ConvConfig& c) {
  return plan_winograd(input_grad_problem(c), {});
}

}  // namespace ballast::kernels
