#include "kernels/conv/grouped/conv_grouped.h"

#include "kernels/conv/conv_arguments.h"
#include "kernels/conv/conv_problem.h"
#include "kernels/conv/depthwise/conv_depth.h"
#include "kernels/conv/depthwise/conv_depth_in_place.h"
#include "kernels/plan/halide_runtime.h"
#include "kernels/plan/registers.h"
#include "kernels/plan/workspace.h"
#include "kernels/recipe/lanes.h"

#include <fmt/format.h>

#include <algorithm>

namespace ballast::kernels {
namespace {

// Results' channels of a group: more fill vectors by themselves.
constexpr int64_t kGroupedOutputs = 8;

// A convolution without strides of planes whose pixels lie `spread` apart, or with strides of
// planes as they are.
struct Spread {
  ConvProblem window;
  int64_t spread_h = 1, spread_w = 1;
};

// A block of rows of results, and what of the padded planes it reads.
struct Block {
  int64_t pitch = 0, padded_rows = 0, rows = 0, per_sample = 0;
};

Block block_of(const Spread& s, int64_t rows) {
  const ConvProblem& p = s.window;
  Block block;
  block.pitch = (p.out_w - 1) * p.stride_w + (p.kernel_w - 1) * p.dilation_w + 1;
  block.rows = rows;
  block.padded_rows = (rows - 1) * p.stride_h + (p.kernel_h - 1) * p.dilation_h + 1;
  block.per_sample = ceil_div(p.out_h, rows);
  return block;
}

// Source pixels of the rows of a block, and 15 on both sides.
bool fits(const Spread& s, const Block& block) {
  const int64_t read = (block.padded_rows / s.spread_h + 1) * s.window.in_w;
  return block.padded_rows * block.pitch < kGroupedPlaces && read + 2 * kLanes <= kGroupedPlaces &&
         block.rows * s.window.out_w + 2 * kLanes <= kGroupedPlaces;
}

// Few blocks of as many rows each as possible; no rows where nothing fits.
Block choose_block(const Spread& s) {
  int64_t most = s.window.out_h;
  while (most > 0 && !fits(s, block_of(s, most))) --most;
  return most == 0 ? Block{}
                   : block_of(s, ceil_div(s.window.out_h, ceil_div(s.window.out_h, most)));
}

// For the weights: as many rows as the nearest cache keeps, turned, of x and dy, unless too much of
// x is then turned twice. Of one input channel all rows are faster (5x5 two apart 1.17 times), and
// of 32 groups of 4 on a Zen 4 (1.26 times). Not measured where registers are narrow.
Block choose_weight_block(const Spread& s) {
  constexpr int64_t kNearPlaces = 640;
  const ConvProblem& p = s.window;
  const Block most = choose_block(s);
  if (p.inputs == 1 || !has_wide_units()) return most;
  for (int64_t rows = most.rows; rows > 0; --rows) {
    const Block block = block_of(s, ceil_div(p.out_h, ceil_div(p.out_h, rows)));
    const int64_t pixels = block.rows * p.out_w;
    const bool is_near = block.padded_rows * block.pitch + pixels <= kNearPlaces,
               turns_few_twice = 2 * block.padded_rows <= 3 * block.rows * p.stride_h;
    if (is_near && turns_few_twice && pixels >= kLanes) return block;
  }
  return most;
}

// Has kernels of its own.
bool is_square(const ConvProblem& p) {
  return p.kernel_h == p.kernel_w && (p.kernel_h == 3 || p.kernel_h == 5 || p.kernel_h == 7);
}

// Few channels to a group, all results' half of a vector and more, and blocks of whole vectors of
// pixels.
bool fits(const Spread& s) {
  const ConvProblem& p = s.window;
  if (p.batch == 0 || p.inputs > kGroupedInputs || p.outputs > kGroupedOutputs ||
      p.groups * p.outputs < kLanes / 2 || p.window() > kGroupedTaps) {
    return false;
  }
  const Block block = choose_block(s);
  return block.rows * p.out_w >= kLanes && p.in_h * p.in_w >= kLanes;
}

// Whether it is better so, where lanes along the rows are possible.
bool is_better_for_weights(const ConvConfig& c) {
  return !suits_depthwise(c) && is_square(forward_problem(c));
}
bool is_better(const ConvConfig& c) { return is_better_for_weights(c) && !is_in_place(c); }

Spread forward(const ConvConfig& c) { return {forward_problem(c)}; }

// Whether conv_weight_tiles, half of whose lanes are empty, is faster all the same: this turns x
// once for each of a group's channels. Groups of 8 of 8x256x28x28, 3x3, on an Emerald Rapids 3.1
// to 2.5 ms, of 56x56 two apart 7.5 to 4.5; groups of 4 and 14x14 are faster here.
bool are_weights_tiles(const ConvConfig& c) {
  constexpr int64_t kManyInputs = 8, kManyPixels = 512;
  return has_wide_units() && c.in_channels / c.groups >= kManyInputs &&
         (has_strides(c) || c.out_h() * c.out_w() >= kManyPixels);
}

// Without strides; instead dy is spread by them.
Spread input_grad(const ConvConfig& c) {
  Spread s{input_grad_problem(c), c.stride_h, c.stride_w};
  s.window.top = (c.kernel_h - 1) * c.dilation_h - c.top;
  s.window.left = (c.kernel_w - 1) * c.dilation_w - c.left;
  return s;
}

// (pixel, channel, 1, n)
Operand planes_of(uint32_t slot, const ConvConfig& c, int64_t channels, int64_t pixels) {
  return {slot,
          DType::kF32,
          {pixels, channels, 1, c.batch},
          {1, pixels, channels * pixels, channels * pixels},
          {}};
}

// What both kinds of kernels take first: the geometry, and the planes in `slot`.
std::vector<HostArg> arguments(const ConvConfig& c, const Spread& s, const Block& block,
                               uint32_t slot) {
  const ConvProblem& p = s.window;
  std::vector<HostArg> args;
  for (int64_t value : {p.top,
                        p.left,
                        s.spread_h,
                        s.spread_w,
                        p.in_w,
                        block.pitch,
                        block.padded_rows,
                        p.stride_h,
                        p.stride_w,
                        p.dilation_h,
                        p.dilation_w,
                        p.kernel_h,
                        p.kernel_w,
                        p.out_w,
                        p.out_h,
                        block.rows,
                        block.per_sample,
                        p.inputs,
                        p.outputs,
                        p.groups * p.outputs}) {
    args.push_back(number(value));
  }
  args.emplace_back(planes_of(slot, c, p.groups * p.inputs, p.in_h * p.in_w));
  return args;
}

// Planes in slot 0, weights in slot 1.
Plan plan(const ConvConfig& c, const Spread& s, const ConvEpilogue& e) {
  const ConvProblem& p = s.window;
  const int64_t channels = p.groups * p.outputs;
  const EpilogueOperands terms(e, {channels});
  const Operand out = dense_operand(terms.out, DType::kF32, {c.batch, channels, p.out_h * p.out_w});
  Recorder recorder(kNoAliases);
  std::vector<HostArg> args = arguments(c, s, choose_block(s), 0);
  args.insert(args.end(),
              {number(p.tap_step < 0), Operand{1,
                                               DType::kF32,
                                               {p.window(), p.inputs, p.outputs, p.groups},
                                               {1, p.in_step, p.out_step, p.group_step},
                                               {}}});
  terms.append_to(args, out);
  args.push_back(out);
  const bool is_known = is_square(p) && p.dilation_w == 1;
  recorder.call(fmt::format("conv_grouped_{}", is_known ? std::to_string(p.kernel_w) : "any"),
                DeviceClass::kCpu, args);
  return recorder.finish();
}

}  // namespace

bool is_grouped(const ConvConfig& c) {
  return fits(forward(c)) && (is_better(c) || !is_depthwise(c));
}

bool is_grouped_input_grad(const ConvConfig& c) {
  return c.out_h() > 0 && c.out_w() > 0 && fits(input_grad(c)) &&
         (is_better(c) || !is_depthwise_input_grad(c));
}

bool is_grouped_weight_grad(const ConvConfig& c) {
  const Spread s = forward(c);
  return is_square(s.window) && fits(s) && c.out_h() * c.out_w() >= kLanes &&
         !are_weights_tiles(c) && (is_better_for_weights(c) || !is_depthwise_weight_grad(c));
}

Plan plan_conv2d_grouped(const ConvConfig& c, const ConvEpilogue& e) {
  return plan(c, forward(c), e);
}

Plan plan_conv2d_input_grad_grouped(const ConvConfig& c) { return plan(c, input_grad(c), {}); }

Plan plan_conv2d_weight_grad_grouped(const ConvConfig& c) {
  const Spread s = forward(c);
  const Block block = choose_weight_block(s);
  const int64_t taps = s.window.taps(), vectors = ceil_div(c.out_channels, kLanes),
                blocks = c.batch * block.per_sample;
  // Groups enough for the cores.
  constexpr int64_t kGroups = 8;
  const int64_t wanted = std::clamp<int64_t>(ceil_div(kGroups, vectors), 1, blocks);
  const int64_t blocks_per_chunk = ceil_div(blocks, wanted),
                chunks = ceil_div(blocks, blocks_per_chunk);
  Recorder recorder(kNoAliases);
  Workspace scratch(3);
  const int64_t of_vector = taps * kLanes;
  const Operand sums{scratch.add_floats(of_vector * vectors * chunks),
                     DType::kF32,
                     {kLanes, 1, taps, vectors, chunks},
                     {1, kLanes, kLanes, of_vector, of_vector * vectors},
                     {}};
  std::vector<HostArg> args = arguments(c, s, block, 1);
  args.insert(args.end(), {number(blocks_per_chunk),
                           planes_of(0, c, c.out_channels, c.out_h() * c.out_w()), sums});
  recorder.call(fmt::format("conv_grouped_weight_{}", c.kernel_w), DeviceClass::kCpu, args);
  recorder.call(
      "conv_weight_sum", DeviceClass::kCpu,
      {number(vectors), number(1), sums,
       Operand{2, DType::kF32, {taps, c.out_channels, 1}, {1, taps, taps * c.out_channels}, {}}});
  return recorder.finish(scratch);
}

}  // namespace ballast::kernels
