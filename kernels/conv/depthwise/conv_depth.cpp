#include "kernels/conv/depthwise/conv_depth.h"

#include "kernels/conv/conv_arguments.h"
#include "kernels/conv/depthwise/conv_depth_blocks.h"
#include "kernels/conv/depthwise/conv_depth_in_place.h"
#include "kernels/conv/depthwise/conv_depth_operands.h"
#include "kernels/conv/depthwise/conv_depth_turned.h"
#include "kernels/plan/halide_runtime.h"
#include "kernels/plan/registers.h"
#include "kernels/plan/streaming.h"
#include "kernels/recipe/lanes.h"

#include <algorithm>

namespace ballast::kernels {
namespace {

using namespace depth;

constexpr int64_t kVector = kLanes;  // least width of what is read
// Results of a channel: more are lanes of tiles. 64 of rows of 16000, windows of 80 four apart, on
// a Zen 4 67 to 4.3 ms.
constexpr int64_t kMostOutputs = 8;
constexpr int64_t kLinesRows = 4;  // least height of a block of lines; where paired, a divisor

// A plane of results of `window` over padded rows `pitch` apart, in blocks of `rows` rows, which
// are a divisor of its height.
struct Blocks {
  int64_t height = 0, width = 0, pitch = 0, rows = 0, elements = 0;
};

// in_w: with the spread, before padding. Padded rows go on for whole steps of `row_step` rows.
Blocks make_blocks(int64_t height, int64_t width, int64_t left, int64_t in_w, int64_t stride_h,
                   int64_t stride_w, int64_t reach_h, int64_t reach_w, int64_t row_step = 1) {
  Blocks blocks{height, width, std::max((width - 1) * stride_w + reach_w + 1, left + in_w), height};
  const auto elements = [&](int64_t rows) {
    const int64_t last = ceil_div(rows, row_step) * row_step - 1;
    return ceil_div((last * stride_h + reach_h + 1) * blocks.pitch, kVector) * kVector;
  };
  while (blocks.rows > 0 &&
         (blocks.height % blocks.rows != 0 || elements(blocks.rows) > kDepthElements)) {
    --blocks.rows;
  }
  blocks.elements = elements(blocks.rows);
  return blocks;
}

Blocks forward_blocks(const ConvConfig& c, int64_t row_step = 1) {
  return make_blocks(c.out_h(), c.out_w(), c.left, c.width, c.stride_h, c.stride_w,
                     (c.kernel_h - 1) * c.dilation_h, (c.kernel_w - 1) * c.dilation_w, row_step);
}

// dx takes dy, spread by the strides, through flipped windows.
struct Reversed {
  int64_t top, left;
  Blocks blocks;
};
Reversed reversed(const ConvConfig& c) {
  const int64_t reach_h = (c.kernel_h - 1) * c.dilation_h,
                reach_w = (c.kernel_w - 1) * c.dilation_w;
  const int64_t left = reach_w - c.left, in_w = (c.out_w() - 1) * c.stride_w + 1;
  return {reach_h - c.top, left,
          make_blocks(c.height, c.width, left, in_w, 1, 1, reach_h, reach_w)};
}

// Dense [batch, groups, channels, height, width] as (x, row, block, channel, group, n).
Operand blocked(uint32_t slot, const ConvConfig& c, int64_t channels, const Blocks& blocks) {
  const int64_t plane = blocks.height * blocks.width;
  return {slot,
          DType::kF32,
          {blocks.width, blocks.rows, blocks.height / blocks.rows, channels, c.groups, c.batch},
          {1, blocks.width, blocks.rows * blocks.width, plane, channels * plane,
           c.groups * channels * plane},
          {}};
}

Operand planes(uint32_t slot, const ConvConfig& c, int64_t height, int64_t width) {
  return dense_operand(slot, DType::kF32, {c.batch, c.groups, height, width});
}

// A plane in blocks of rows that are whole vectors, one after the other, for conv_depth_lines.
struct Lines {
  int64_t rows = 0, blocks = 0, width = 0, length = 0, margin = 0;
  bool is_paired = false;  // two rows are whole vectors
};

Lines make_lines(int64_t height, int64_t width, int64_t most) {
  const int64_t margin = ceil_div(width + 1, kVector) * kVector;
  for (bool is_paired : {true, false}) {
    for (int64_t rows = height; rows >= std::min(height, kLinesRows); --rows) {
      const int64_t length = rows * width;
      const bool fits = height % rows == 0 && length % kVector == 0 && length + 2 * margin <= most;
      const bool has_pairs = 2 * width % kVector == 0 && rows % kLinesRows == 0;
      if (fits && (has_pairs || !is_paired)) {
        return {rows, height / rows, width, length, margin, is_paired};
      }
    }
  }
  return {};
}

Lines lines_of(const ConvConfig& c, int64_t most = kDepthLinesElements) {
  return is_same(c, 3) ? make_lines(c.height, c.width, most) : Lines{};
}

// Dense [batch, groups, channels, height, width] as (l, c, q, b, channel, group, n).
Operand lines_operand(uint32_t slot, const ConvConfig& c, int64_t channels, const Lines& lines) {
  const int64_t step = lines.is_paired ? 2 * lines.width : lines.length;
  const int64_t plane = c.height * c.width;
  return {slot,
          DType::kF32,
          {kVector, step / kVector, lines.length / step, lines.blocks, channels, c.groups, c.batch},
          {1, kVector, step, lines.length, plane, channels * plane, c.groups * channels * plane},
          {}};
}

// y, or dx, which is that of flipped windows.
Plan plan_lines(const ConvConfig& c, const ConvEpilogue& e, const Lines& lines, bool is_flipped) {
  const EpilogueOperands terms = terms_of(c, e);
  SourceRules rules = kDirectAccess;
  rules.streams = should_stream(DeviceClass::kCpu, c.batch * c.out_channels, c.height * c.width,
                                kStreamedBytes);
  Recorder recorder(rules);
  call_with_epilogue(recorder, "conv_depth_lines",
                     {number(lines.width), number(lines.length), number(lines.margin),
                      flat_planes(0, c), number(lines.is_paired),
                      number(planes_of_group(c, lines.blocks)), number(is_flipped), weights(1, c)},
                     terms, lines_operand(terms.out, c, c.out_channels / c.groups, lines));
  return recorder.finish();
}

// In small blocks, so that dy and what comes next of both lie in the nearest cache too.
Lines weight_lines_of(const ConvConfig& c) {
  const Lines lines = lines_of(c, kDepthLinesElements / 2);
  return lines.is_paired ? lines : lines_of(c);
}

Plan plan_weight_lines(const ConvConfig& c, const Lines& lines) {
  Recorder recorder(kDirectAccess);
  recorder.call("conv_depth_weight_lines", DeviceClass::kCpu,
                {number(lines.width), number(lines.length), number(lines.margin), flat_planes(1, c),
                 lines_operand(0, c, c.out_channels / c.groups, lines), weights(2, c)});
  return recorder.finish();
}

// Also where it could be read in place, without AVX-512, where windows of 5x5 have room for neither
// their weights nor their sums.
bool should_turn(const ConvConfig& c, bool in_place) {
  return is_turned(c) && (!in_place || !has_wide_registers());
}

}  // namespace

bool suits_depthwise(const ConvConfig& c) {
  return is_in_place_weight_grad(c) || is_turned(c) || is_turned_halved(c) ||
         (is_step(c, 3) && (c.width <= kDepthRowsPixels || lines_of(c).rows > 0));
}

bool is_depthwise(const ConvConfig& c) {
  if (is_in_place(c) || is_turned(c) || is_turned_halved(c) || is_of_blocks(c)) return true;
  return has_one_channel(c) && group_outputs(c) <= kMostOutputs && c.width >= kVector &&
         c.out_w() >= kVector / 2 && forward_blocks(c).rows > 0;
}

bool is_depthwise_input_grad(const ConvConfig& c) {
  const bool has_one_output = c.out_channels == c.groups;
  if (has_one_output && (is_in_place_input_grad(c) || is_of_blocks(c))) return true;
  if (is_turned(c)) return true;
  const Reversed r = reversed(c);
  return has_one_channel(c) && has_one_output && c.out_w() >= kVector && c.width >= kVector &&
         r.top >= 0 && r.left >= 0 && r.blocks.rows > 0;
}

bool is_depthwise_weight_grad(const ConvConfig& c) {
  if (is_in_place_weight_grad(c) || is_turned(c) || is_turned_halved(c)) return true;
  // Other windows of a single channel are better off in tiles, and many results without padding.
  const bool is_rows = is_same(c, 3) || (is_step(c, 3) && group_outputs(c) <= kMostOutputs);
  return has_one_channel(c) && (c.groups > 1 || is_rows) && c.width >= kVector &&
         c.out_w() >= kVector && std::max(c.kernel_h, c.kernel_w) <= kDepthTaps &&
         forward_blocks(c, kDepthRows).rows > 0;
}

Plan plan_conv2d_depthwise(const ConvConfig& c, const ConvEpilogue& e) {
  if (is_of_blocks(c)) return plan_conv2d_depth_blocks(c, e);
  const bool in_place = is_in_place(c, e.has_residual);
  if (should_turn(c, in_place) || (is_turned_halved(c) && !in_place)) {
    return plan_conv2d_turned(c, e);
  }
  if (in_place) return plan_conv2d_in_place(c, e);
  if (const Lines lines = lines_of(c); lines.rows > 0) return plan_lines(c, e, lines, false);
  const Blocks blocks = forward_blocks(c);
  const EpilogueOperands terms = terms_of(c, e);
  Recorder recorder(kDirectAccess);
  call_with_epilogue(recorder, "conv_depth",
                     {number(c.stride_h), number(c.stride_w), number(c.dilation_h),
                      number(c.dilation_w), number(c.top), number(c.left), number(1), number(1),
                      number(blocks.pitch), number(blocks.rows), number(blocks.elements), number(0),
                      planes(0, c, c.height, c.width), weights(1, c)},
                     terms, blocked(terms.out, c, c.out_channels / c.groups, blocks));
  return recorder.finish();
}

Plan plan_conv2d_input_grad_depthwise(const ConvConfig& c) {
  if (is_of_blocks(c)) return plan_conv2d_input_grad_depth_blocks(c);
  const bool in_place = is_in_place_input_grad(c);
  if (should_turn(c, in_place)) return plan_conv2d_input_grad_turned(c);
  if (in_place) return plan_conv2d_input_grad_in_place(c);
  if (const Lines lines = lines_of(c); lines.rows > 0) return plan_lines(c, {}, lines, true);
  const Reversed r = reversed(c);
  const EpilogueOperands terms = terms_of(c, {});
  Recorder recorder(kDirectAccess);
  call_with_epilogue(recorder, "conv_depth",
                     {number(1), number(1), number(c.dilation_h), number(c.dilation_w),
                      number(r.top), number(r.left), number(c.stride_h), number(c.stride_w),
                      number(r.blocks.pitch), number(r.blocks.rows), number(r.blocks.elements),
                      number(1), planes(0, c, c.out_h(), c.out_w()), weights(1, c)},
                     terms, blocked(terms.out, c, 1, r.blocks));
  return recorder.finish();
}

Plan plan_conv2d_weight_grad_depthwise(const ConvConfig& c) {
  const bool in_place = is_in_place_weight_grad(c);
  if (should_turn(c, in_place) || is_turned_halved(c)) {
    return plan_conv2d_weight_grad_turned(c);
  }
  if (in_place) return plan_conv2d_weight_grad_in_place(c);
  if (const Lines lines = weight_lines_of(c); lines.is_paired) return plan_weight_lines(c, lines);
  const Blocks blocks = forward_blocks(c, kDepthRows);
  Recorder recorder(kDirectAccess);
  const std::string kernel = is_step(c, 3) ? "conv_depth_weight_3x3" : "conv_depth_weight";
  recorder.call(kernel, DeviceClass::kCpu,
                {number(c.stride_h), number(c.stride_w), number(c.dilation_h), number(c.dilation_w),
                 number(c.top), number(c.left), number(1), number(1), number(blocks.pitch),
                 number(blocks.rows), number(blocks.elements), planes(1, c, c.height, c.width),
                 blocked(0, c, c.out_channels / c.groups, blocks), weights(2, c)});
  return recorder.finish();
}

}  // namespace ballast::kernels
