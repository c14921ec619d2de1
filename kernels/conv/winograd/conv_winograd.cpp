#include "kernels/conv/winograd/conv_winograd.h"

#include "kernels/conv/conv_arguments.h"
#include "kernels/conv/planes/conv_planes.h"
#include "kernels/conv/winograd/conv_winograd_deep.h"
#include "kernels/plan/registers.h"
#include "kernels/recipe/lanes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

namespace ballast::kernels {
namespace {

constexpr int64_t kPhase = 2, kPhases = kPhase * kPhase;  // of its input
constexpr int64_t kCachedFloats = 1 << 18;                // of weights that the second cache keeps

using Form = WinogradForm;

// How a problem is cut into work-groups: `rows` of tiles of `samples`, which are more than one only
// where all rows are a block, and of a block's channels a part.
struct Cut {
  ConvTile tile;
  int64_t rows = 0, samples, plane, tiles, elements, blocks, parts, tiles_per_part, channel_tiles;
  double cycles;  // per sample
};

int64_t transformed_weights(const ConvProblem& p, const Form& form) {
  return p.inputs * p.outputs * form.elements();
}

int64_t rows_of_tiles(const ConvProblem& p, const Form& form) {
  return ceil_div(p.out_h, form.results);
}
int64_t columns_of_tiles(const ConvProblem& p, const Form& form) {
  return ceil_div(p.out_w, form.results);
}
int64_t pitch_of(const ConvProblem& p, const Form& form) {
  return std::max(columns_of_tiles(p, form) * form.step / kPhase + form.reach(),
                  (p.left + p.in_w - 1) / kPhase + 1);
}

Cut cut_block(const ConvProblem& p, const Form& form, const ConvTile& tile, int64_t rows,
              int64_t samples) {
  const int64_t columns = columns_of_tiles(p, form), vectors_of_row = ceil_div(columns, kLanes),
                step = form.step / kPhase;
  Cut cut{tile, rows, samples};
  cut.plane = samples * (rows * step + form.reach()) * pitch_of(p, form);
  // Vectors that begin at a row's last tile pass its end, and those of every other element begin
  // one later.
  const int64_t passed = vectors_of_row * kLanes * step + form.reach() + step - 1;
  cut.elements = ceil_div(kPhases * cut.plane + passed, kLanes) * kLanes;
  cut.tiles = ceil_div(samples * rows * columns, tile.broadcast);
  cut.blocks = ceil_div(rows_of_tiles(p, form), rows) * ceil_div(p.batch, samples);
  cut.channel_tiles = ceil_div(p.outputs, tile.lanes());
  const ChannelParts parts = share_channels(cut.blocks * p.groups, cut.channel_tiles);
  cut.parts = parts.count, cut.tiles_per_part = parts.tiles;
  // Measured on a Zen 4, which does one multiply-add of 16 lanes a cycle.
  constexpr double kOfVectorCopied = 6, kOfInputElement = 4, kOfElement = 2, kOfResult = 7,
                   kOfWeights = 450, kOfWeightPassing = 4;
  const double elements = form.elements(), of_tile = form.results * form.results;
  const double vectors = double(tile.vectors), tiles = double(cut.tiles * tile.broadcast);
  const double input =
      double(p.inputs) * (double(cut.elements) / kLanes * kOfVectorCopied +
                          double(samples * rows * vectors_of_row) * elements * kOfInputElement);
  const double results =
      tiles * vectors * (elements * (double(p.inputs) + kOfElement) + of_tile * kOfResult);
  const double weights = double(cut.channel_tiles) * vectors * double(p.inputs) * kOfWeights;
  // A vector of weights that each block reads from behind the second cache, where the last one is
  // far (an Emerald Rapids).
  const double passing =
      has_wide_units() && transformed_weights(p, form) > kCachedFloats
          ? double(cut.channel_tiles) * vectors * double(p.inputs) * elements * kOfWeightPassing
          : 0;
  const double block = double(cut.parts) * input + double(cut.channel_tiles) * results + passing;
  cut.cycles = (double(cut.blocks) * block + weights) / double(p.batch);
  return cut;
}

bool fits(const ConvProblem& p, const Form& form, const Cut& cut) {
  const int64_t tiles = cut.tiles * cut.tile.broadcast;
  return cut.elements <= kPlaneElements && tiles <= form.most_tiles &&
         (tiles * p.inputs + kLanes) * form.elements() <= kWinogradSpread;
}

// The way that takes the least time; none where nothing fits.
Cut cut_problem(const ConvProblem& p, const Form& form) {
  const int64_t all_rows = rows_of_tiles(p, form);
  Cut best{};
  for (const ConvTile& tile : winograd_tiles()) {
    if (p.outputs < tile.lanes()) continue;
    for (int64_t rows = 1; rows <= all_rows; ++rows) {
      if (!fills_vectors(p, rows, form)) continue;
      for (int64_t samples = 1; samples <= (rows < all_rows ? 1 : p.batch); ++samples) {
        const Cut cut = cut_block(p, form, tile, rows, samples);
        if (!fits(p, form, cut)) break;
        if (best.rows == 0 || cut.cycles < best.cycles) best = cut;
      }
    }
  }
  return best;
}

// Whether work-groups shall transform the weights that they need (conv_winograd_deep.h): not where
// the second cache keeps all of them transformed, and in tiles of one vector, which the estimate
// takes to be as fast, only where much is gained.
bool is_deep(const ConvProblem& p, const Form& form, const Cut& cut) {
  if (std::string_view(form.name) != kWinogradDense.name) return false;
  if (transformed_weights(p, form) <= kCachedFloats) return false;
  const double deep = winograd_deep_cycles(p) * (has_wide_registers() ? 1 : 1.15);
  return cut.rows == 0 ? std::isfinite(deep) : deep < cut.cycles;
}

bool is_taken(const ConvConfig& c, const ConvProblem& p, const Form& form) {
  if (p.top < 0 || p.left < 0 || p.inputs < kLanes) return false;
  const Cut cut = cut_problem(p, form);
  if (!is_deep(p, form, cut)) return cut.rows > 0 && is_winograd_faster(cut.cycles, c);
  // The direct kernels write all weights anew before they multiply.
  constexpr double kOfWeight = 2;
  const double packed = kOfWeight * double(p.inputs * p.outputs * p.window()) / double(p.batch);
  return is_winograd_faster(winograd_deep_cycles(p) - packed, c);
}

// Chunks of one length whose weights take half of the nearest cache.
int64_t chunk_of(const ConvProblem& p, const ConvTile& tile) {
  constexpr int64_t kMostWeights = 64 * 64;
  return ceil_div(p.inputs, ceil_div(p.inputs * tile.lanes(), kMostWeights));
}

// x and the weights in slots 0 and 1.
Plan plan_winograd(const ConvProblem& p, const Form& form, const ConvEpilogue& e) {
  const Cut cut = cut_problem(p, form);
  if (is_deep(p, form, cut)) return plan_winograd_deep(p, e);
  const ConvTile& tile = cut.tile;
  const EpilogueOperands terms(e, {p.outputs, p.groups});
  Recorder recorder(kDirectAccess);
  Workspace scratch(terms.out + 1);
  const int64_t elements = form.window_elements(), taps = p.inputs * elements,
                panel = taps * tile.lanes();
  const uint32_t packed = scratch.add_floats(p.groups * cut.channel_tiles * panel);
  // The gradient towards the input flips windows, which lie one after the other along its results.
  const bool is_turned = p.tap_step < 0;
  const int64_t in_row = is_turned ? p.outputs : p.inputs,
                source_rows = is_turned ? p.inputs : p.outputs, row = in_row * p.window();
  recorder.call(
      fmt::format("conv_winograd_filters_{}{}", form.of_windows, is_turned ? "_turned" : ""),
      DeviceClass::kCpu,
      {dense_operand(1, DType::kF32, {p.groups, source_rows, row}),
       dense_operand(packed, DType::kF32,
                     {p.groups, cut.channel_tiles, elements, p.inputs, tile.lanes()})});
  const Operand y = winograd_results(terms.out, p);
  std::vector<HostArg> args;
  for (int64_t value : {p.top, p.left, pitch_of(p, form), cut.plane, cut.rows, cut.elements,
                        cut.tiles, cut.parts, cut.tiles_per_part}) {
    args.push_back(number(value));
  }
  args.insert(args.end(), {planes_operand(0, p, p.inputs, p.in_h, p.in_w),
                           dense_operand(packed, DType::kF32,
                                         {p.groups, cut.channel_tiles, taps, tile.lanes()})});
  terms.append_to(args, y);
  args.insert(args.end(), {number(p.out_w), number(p.out_h), number(cut.samples),
                           number(chunk_of(p, tile)), y});
  recorder.call(fmt::format("conv_winograd_{}x{}_{}", tile.broadcast, tile.vectors, form.name),
                DeviceClass::kCpu, args);
  return recorder.finish(scratch);
}

const Form& form_between(const ConvConfig& c) {
  if (c.stride_h == 1) return winograd_form_of(c);
  if (c.kernel_h == kWinogradFours.window) return kWinogradBetweenFours;
  return c.top % 2 == 1 ? kWinogradBetweenOdd : kWinogradBetweenEven;
}
bool has_dense_window(const ConvConfig& c) {
  return has_winograd_window(c) || has_winograd_window(c, 1, kWinogradFives.window);
}

// The gradient towards the input. With a stride of 2, patches begin where the first tap of the
// first run meets dy.
ConvProblem between_problem(const ConvConfig& c) {
  ConvProblem p = input_grad_problem(c);
  if (c.stride_h == 1) return p;
  const Form& form = form_between(c);
  p.top = (form.window - 1 - form.runs[0].phase - c.top) / 2;
  p.left = (form.window - 1 - form.runs[0].phase - c.left) / 2;
  return p;
}

}  // namespace

const WinogradForm& winograd_form_of(const ConvConfig& c) {
  if (c.kernel_h == kWinogradFives.window) return kWinogradFives;
  if (c.kernel_h == kWinogradFours.window) return kWinogradFours;
  return c.stride_h == 1 ? kWinogradDense : kWinogradApart;
}

bool has_winograd_form(const ConvConfig& c) {
  return has_dense_window(c) || has_winograd_window(c, 2) ||
         has_winograd_window(c, 2, kWinogradFours.window);
}

bool has_winograd_window(const ConvConfig& c, int64_t stride, int64_t taps) {
  return c.kernel_h == taps && c.kernel_w == taps && c.stride_h == stride && c.stride_w == stride &&
         c.dilation_h == 1 && c.dilation_w == 1 && c.batch > 0 && c.height > 0 && c.width > 0 &&
         c.out_h() > 0 && c.out_w() > 0;
}

std::vector<ConvTile> winograd_tiles() {
  if (!has_wide_registers()) return {{6, 1, 1 / 121.0}};
  return {{6, 4, 1 / 240.0}, {12, 2, 1 / 225.0}};
}

bool fills_vectors(const ConvProblem& p, int64_t rows, const WinogradForm& form) {
  const int64_t passed = rows_of_tiles(p, form) * form.results - p.out_h;
  return (rows * form.results - passed) * p.out_w >= kLanes;
}

Operand winograd_results(uint32_t slot, const ConvProblem& p) {
  const int64_t pixels = p.out_h * p.out_w, of_group = p.outputs * pixels;
  return {slot,
          DType::kF32,
          {pixels, p.batch, p.outputs, p.groups, 1},
          {1, p.groups * of_group, pixels, of_group, p.batch * p.groups * of_group},
          {}};
}

bool is_winograd_faster(double cycles, const ConvConfig& c) {
  constexpr double kOfPeak = 0.85;
  // Direct kernels do two multiply-adds a cycle where units are wide; transforms take as long, and
  // products wait for the second cache. On an Emerald Rapids 3x3 with a stride of 2 from 128 to 192
  // channels of 35x35 takes 2.0 ms and directly 1.5, towards x 1.9 and 1.5.
  const double margin = has_wide_units() ? 1.4 : has_wide_registers() ? 1.05 : 1.2;
  const double products = double(c.in_channels / c.groups) * double(c.out_channels / c.groups) *
                          double(c.kernel_h * c.kernel_w) * double(c.out_h() * c.out_w());
  return cycles * margin < products / kLanes / kOfPeak;
}

bool is_winograd(const ConvConfig& c) {
  return has_winograd_form(c) && is_taken(c, forward_problem(c), winograd_form_of(c));
}

bool is_winograd_input_grad(const ConvConfig& c) {
  const bool is_apart =
      has_winograd_window(c, 2) && std::max(c.top, c.left) <= 2 && c.top % 2 == c.left % 2;
  const bool is_fours =
      has_winograd_window(c, 2, kWinogradFours.window) && c.top == 1 && c.left == 1;
  return (has_dense_window(c) || is_apart || is_fours) &&
         is_taken(c, between_problem(c), form_between(c));
}

Plan plan_conv2d_winograd(const ConvConfig& c, const ConvEpilogue& e) {
  return plan_winograd(forward_problem(c), winograd_form_of(c), e);
}

Plan plan_conv2d_input_grad_winograd(const ConvConfig& c) {
  return plan_winograd(between_problem(c), form_between(c), {});
}

}  // namespace ballast::kernels
