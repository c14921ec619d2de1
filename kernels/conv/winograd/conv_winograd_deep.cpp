#include "kernels/conv/winograd/conv_winograd_deep.h"

#include "kernels/conv/conv_arguments.h"
#include "kernels/conv/winograd/conv_winograd.h"
#include "kernels/conv/winograd/conv_winograd_weight.h"
#include "kernels/recipe/lanes.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <vector>

namespace ballast::kernels {
namespace {

constexpr int64_t kSide = 2, kElements = 16;  // of a tile of results, of its transformed input
constexpr int64_t kPanel = 64;                // output channels of a work-group

// `rows` of tiles of `samples` are a block, in `tiles` tiles of registers.
struct Cut {
  ConvTile tile;
  int64_t rows = 0, samples, tiles, blocks, panels, vectors, chunk;
  double cycles;  // per sample
  int64_t padded() const { return tiles * tile.broadcast; }
};

int64_t columns_of(const ConvProblem& p) { return ceil_div(p.out_w, kSide); }

Cut cut_block(const ConvProblem& p, int64_t rows, int64_t samples) {
  Cut cut{winograd_tiles().front(), rows, samples};
  const int64_t all_rows = ceil_div(p.out_h, kSide), columns = columns_of(p);
  cut.tiles = ceil_div(samples * rows * columns, cut.tile.broadcast);
  cut.blocks = ceil_div(all_rows, rows) * ceil_div(p.batch, samples);
  cut.panels = ceil_div(p.outputs, kPanel);
  cut.vectors = ceil_div(p.inputs, kLanes);
  cut.chunk = ceil_div(cut.vectors, ceil_div(cut.vectors * kLanes, kWinogradChunk)) * kLanes;
  // As conv_winograd.cpp and conv_winograd_weight.cpp count them; of weights, on an Emerald Rapids.
  constexpr double kOfInput = 80, kOfPixel = 7, kOfResult = 60, kOfWeights = 200;
  const double inputs = double(p.inputs), tiles = double(cut.padded()),
               pixels = double(samples * (kSide * rows + kSide) * p.in_w);
  const double panel =
      kPanel / kLanes * (tiles * (kElements * inputs + kOfResult) + inputs * kOfWeights);
  const double block =
      double(cut.vectors) * (tiles * kOfInput + pixels * kOfPixel) + double(cut.panels) * panel;
  cut.cycles = double(cut.blocks) * block / double(p.batch);
  return cut;
}

// The way that takes the least time; none where nothing fits.
Cut cut_problem(const ConvProblem& p) {
  Cut best{};
  if (p.outputs < kPanel || p.in_h * p.in_w < kLanes) return best;
  const int64_t all_rows = ceil_div(p.out_h, kSide);
  for (int64_t rows = 1; rows <= all_rows; ++rows) {
    if (!fills_vectors(p, rows)) continue;
    for (int64_t samples = 1; samples <= (rows < all_rows ? 1 : p.batch); ++samples) {
      if (samples * rows * columns_of(p) > kWinogradDense.most_tiles) break;
      if (!fits_places(kWinogradDense, p.out_w, p.in_w, rows, samples)) break;
      const Cut cut = cut_block(p, rows, samples);
      if (best.rows == 0 || cut.cycles < best.cycles) best = cut;
    }
  }
  return best;
}

}  // namespace

double winograd_deep_cycles(const ConvProblem& p) {
  const Cut cut = cut_problem(p);
  return cut.rows == 0 ? std::numeric_limits<double>::infinity() : cut.cycles;
}

Plan plan_winograd_deep(const ConvProblem& p, const ConvEpilogue& e) {
  const Cut cut = cut_problem(p);
  const EpilogueOperands terms(e, {p.outputs, p.groups});
  Recorder recorder(kDirectAccess);
  Workspace scratch(terms.out + 1);
  const int64_t places = kElements * cut.padded();
  const uint32_t spread = scratch.add_floats(cut.blocks * p.groups * cut.vectors * places * kLanes);
  recorder.call(
      "conv_winograd_inputs", DeviceClass::kCpu,
      {number(p.top), number(p.left), number(p.in_w), number(p.out_w), number(p.out_h),
       number(cut.rows), number(cut.samples),
       dense_operand(0, DType::kF32, {p.batch, p.groups, p.inputs, p.in_h * p.in_w}),
       dense_operand(spread, DType::kF32,
                     {cut.blocks, p.groups * cut.vectors, kElements, cut.padded(), kLanes})});

  const bool is_turned = p.tap_step < 0;
  const int64_t in_row = is_turned ? p.outputs : p.inputs,
                source_rows = is_turned ? p.inputs : p.outputs;
  const Operand y = winograd_results(terms.out, p);
  constexpr int64_t kNoPlane = 0, kPanelsOfPart = 1;  // it pads nothing
  std::vector<HostArg> args;
  for (int64_t value : {kNoPlane, kNoPlane, kNoPlane, kNoPlane, cut.rows, kNoPlane, cut.tiles,
                        cut.panels, kPanelsOfPart}) {
    args.push_back(number(value));
  }
  args.insert(
      args.end(),
      {dense_operand(spread, DType::kF32, {cut.blocks, p.groups, cut.vectors, places, kLanes}),
       dense_operand(1, DType::kF32, {1, p.groups, source_rows, in_row * p.window()})});
  terms.append_to(args, y);
  args.insert(args.end(),
              {number(p.out_w), number(p.out_h), number(cut.samples), number(cut.chunk), y});
  recorder.call(fmt::format("conv_winograd_deep_{}x{}{}", cut.tile.broadcast, cut.tile.vectors,
                            is_turned ? "_turned" : ""),
                DeviceClass::kCpu, args);
  return recorder.finish(scratch);
}

}  // namespace ballast::kernels
