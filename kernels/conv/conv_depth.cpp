#include "kernels/conv/conv_depth.h"

#include "kernels/conv/conv_arguments.h"
#include "kernels/halide_runtime.h"
#include "kernels/lanes.h"
#include "kernels/registers.h"
#include "kernels/streaming.h"

#include <algorithm>

namespace ballast::kernels {
namespace {

constexpr int64_t kVector = kLanes;  // least width of what is read
constexpr int64_t kLinesRows = 4;    // least height of a block of lines; where paired, a divisor

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

EpilogueOperands terms_of(const ConvConfig& c, const ConvEpilogue& e) {
  return {e, {c.out_channels / c.groups, c.groups}};
}

// Calls a kernel whose arguments end with weights, the epilogue's and the result.
void call_with_epilogue(Recorder& recorder, const std::string& kernel, std::vector<HostArg> args,
                        const EpilogueOperands& terms, const Operand& out) {
  terms.append_to(args, out);
  args.push_back(out);
  recorder.call(kernel, DeviceClass::kCpu, args);
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

Operand weights(uint32_t slot, const ConvConfig& c) {
  return dense_operand(slot, DType::kF32,
                       {c.groups, c.out_channels / c.groups, c.kernel_h, c.kernel_w});
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

bool are_all(int64_t wanted, std::initializer_list<int64_t> values) {
  return std::all_of(values.begin(), values.end(), [&](int64_t v) { return v == wanted; });
}

// 3x3 without strides and dilation.
bool is_3x3_step(const ConvConfig& c) {
  return are_all(3, {c.kernel_h, c.kernel_w}) &&
         are_all(1, {c.stride_h, c.stride_w, c.dilation_h, c.dilation_w});
}

// A square window without strides and dilation, with results of the size of x; dx of one is one.
bool is_same(const ConvConfig& c, int64_t window) {
  return are_all(window, {c.kernel_h, c.kernel_w}) &&
         are_all(1, {c.stride_h, c.stride_w, c.dilation_h, c.dilation_w}) &&
         are_all(window / 2, {c.top, c.left, c.bottom, c.right});
}
bool is_same_3x3(const ConvConfig& c) { return is_same(c, 3); }

bool has_one_channel(const ConvConfig& c) { return c.in_channels == c.groups; }

Lines lines_of(const ConvConfig& c, int64_t most = kDepthLinesElements) {
  return is_same_3x3(c) ? make_lines(c.height, c.width, most) : Lines{};
}

// For conv_depth_rows: where the last cache keeps what goes in and out. Elsewhere whole lines,
// which may go past it, are the better results.
bool reads_rows_in_place(const ConvConfig& c, bool has_residual = false) {
  const int64_t pixels = c.height * c.width * c.batch;
  const int64_t elements = pixels * (c.in_channels + (has_residual ? 2 : 1) * c.out_channels);
  return is_same_3x3(c) && c.height >= kDepthRows && c.width >= kVector &&
         c.width <= kDepthRowsVectors * kVector && elements * 4 <= last_cache_bytes();
}

// The same for 5x5, without a kernel of lines.
bool is_5x5_of_rows(const ConvConfig& c) {
  return has_one_channel(c) && is_same(c, 5) && c.height >= kDepthRows && c.width >= kVector &&
         c.width <= kDepthRows5x5;
}

// Its weight gradient: 25 sums in registers, for each output channel on its own.
bool has_5x5_weights(const ConvConfig& c) {
  constexpr int64_t kMostOutputs = 8;
  return is_5x5_of_rows(c) && has_wide_registers() && c.out_channels <= kMostOutputs * c.groups;
}

// For conv_depth_squares, of which the manifest has these.
bool is_small_square(const ConvConfig& c) {
  constexpr int64_t kSides[] = {6, 7, 8, 10, 12, 13, 14};
  return (is_same(c, 3) || is_same(c, 5)) && c.in_channels == c.groups &&
         c.out_channels == c.groups && has_wide_registers() && c.height == c.width &&
         std::count(std::begin(kSides), std::end(kSides), c.width) > 0;
}

// For conv_depth_halves.
bool is_halved(const ConvConfig& c) {
  return c.in_channels == c.groups && c.out_channels == c.groups &&
         are_all(3, {c.kernel_h, c.kernel_w}) && are_all(2, {c.stride_h, c.stride_w}) &&
         are_all(1, {c.dilation_h, c.dilation_w, c.top, c.left}) &&
         are_all(0, {c.height % 2, c.width % 2}) && c.out_h() == c.height / 2 &&
         c.out_w() == c.width / 2 && c.out_h() >= kDepthRows && c.out_w() >= kVector / 2;
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

Operand flat_planes(uint32_t slot, const ConvConfig& c) {
  return dense_operand(slot, DType::kF32, {c.batch, c.groups, c.height * c.width});
}
Operand flat_results(uint32_t slot, const ConvConfig& c) {
  return dense_operand(slot, DType::kF32, {c.batch, c.groups, c.out_h() * c.out_w()});
}

// How many planes a work-group takes one after the other: a divisor of the channels that leaves
// enough groups to share. Each ends with a wait for its results.
int64_t planes_of_group(const ConvConfig& c, int64_t blocks) {
  constexpr int64_t kMost = 64, kGroups = 32;
  const int64_t all = c.batch * c.groups * blocks;
  int64_t planes = kMost;
  while (planes > 1 && (c.groups % planes != 0 || all / planes < kGroups)) --planes;
  return planes;
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

// Results or what is like them, as flat planes.
Operand channel_planes(uint32_t slot, const ConvConfig& c) {
  return dense_operand(slot, DType::kF32,
                       {c.batch, c.groups, c.out_channels / c.groups, c.height * c.width});
}

// The kernel for rows of so many vectors, and its first arguments.
std::string rows_kernel(const std::string& name, const ConvConfig& c) {
  const bool is_wide = has_wide_registers() && (!halves_wide_registers() || c.kernel_w == 5);
  const int64_t lanes = is_wide ? kVector : kVector / 2;
  const char* window = c.kernel_w == 5 ? "_5x5" : "";
  return fmt::format("{}{}_{}x{}", name, window, ceil_div(c.width, lanes), lanes);
}
std::vector<HostArg> rows_arguments(const ConvConfig& c, uint32_t in) {
  std::vector<HostArg> args;
  for (int64_t rows = 1; rows <= kDepthRows; ++rows) args.push_back(number(rows * c.width));
  args.push_back(flat_planes(in, c));
  return args;
}

// y, or dx, which is that of flipped windows.
Plan plan_rows(const ConvConfig& c, const ConvEpilogue& e, bool is_flipped) {
  const EpilogueOperands terms = terms_of(c, e);
  std::vector<HostArg> args = rows_arguments(c, 0);
  args.insert(args.end(), {number(planes_of_group(c, 1)), number(is_flipped), weights(1, c)});
  Recorder recorder(kDirectAccess);
  call_with_epilogue(recorder, rows_kernel("conv_depth_rows", c), args, terms,
                     channel_planes(terms.out, c));
  return recorder.finish();
}

Plan plan_weight_rows(const ConvConfig& c) {
  std::vector<HostArg> args = rows_arguments(c, 1);
  args.insert(args.end(), {channel_planes(0, c), weights(2, c)});
  const std::string kernel = rows_kernel("conv_depth_weight_rows", c);
  Recorder recorder(kDirectAccess);
  recorder.call(kernel, DeviceClass::kCpu, args);
  return recorder.finish();
}

// Weights of one window to a group.
Operand windows(uint32_t slot, const ConvConfig& c) {
  return dense_operand(slot, DType::kF32, {c.groups, c.kernel_h, c.kernel_w});
}

std::string squares_kernel(const std::string& name, const ConvConfig& c) {
  return fmt::format("{}_{}x{}_{}", name, c.kernel_w, c.kernel_h, c.width);
}

// y, or dx, which is that of flipped windows.
Plan plan_squares(const ConvConfig& c, const ConvEpilogue& e, bool is_flipped) {
  const EpilogueOperands terms{e, {c.groups}};
  Recorder recorder(kDirectAccess);
  call_with_epilogue(
      recorder, squares_kernel("conv_depth_squares", c),
      {flat_planes(0, c), number(planes_of_group(c, 1)), number(is_flipped), windows(1, c)}, terms,
      flat_planes(terms.out, c));
  return recorder.finish();
}

Plan plan_weight_squares(const ConvConfig& c) {
  Recorder recorder(kDirectAccess);
  recorder.call(squares_kernel("conv_depth_weight_squares", c), DeviceClass::kCpu,
                {flat_planes(1, c), flat_planes(0, c), windows(2, c)});
  return recorder.finish();
}

std::string halves_kernel(const std::string& name, const ConvConfig& c) {
  return fmt::format("{}_{}", name, c.out_w() >= kVector ? kVector : kVector / 2);
}

Plan plan_halves(const ConvConfig& c, const ConvEpilogue& e) {
  const EpilogueOperands terms{e, {c.groups}};
  Recorder recorder(kDirectAccess);
  call_with_epilogue(
      recorder, halves_kernel("conv_depth_halves", c),
      {number(c.out_w()), flat_planes(0, c), windows(1, c), number(planes_of_group(c, 1))}, terms,
      flat_results(terms.out, c));
  return recorder.finish();
}

Plan plan_halves_grad(const ConvConfig& c) {
  SourceRules rules = kDirectAccess;
  rules.streams =
      should_stream(DeviceClass::kCpu, c.batch * c.groups * c.height, c.width, kStreamedBytes);
  Recorder recorder(rules);
  recorder.call(halves_kernel("conv_depth_halves_grad", c), DeviceClass::kCpu,
                {number(c.out_w()), flat_results(0, c), windows(1, c),
                 number(planes_of_group(c, 1)), flat_planes(2, c)});
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

}  // namespace

bool suits_rows(const ConvConfig& c) {
  return is_small_square(c) || has_5x5_weights(c) ||
         (is_3x3_step(c) && (c.width <= kDepthRowsVectors * kVector || lines_of(c).rows > 0));
}

bool suits_rows_but_for_weights(const ConvConfig& c) { return is_halved(c) || is_5x5_of_rows(c); }

bool is_depthwise(const ConvConfig& c) {
  if (is_small_square(c) || is_halved(c)) return true;
  return has_one_channel(c) && c.width >= kVector && c.out_w() >= kVector / 2 &&
         forward_blocks(c).rows > 0;
}

bool is_depthwise_input_grad(const ConvConfig& c) {
  if (is_small_square(c) || is_halved(c)) return true;
  const Reversed r = reversed(c);
  return has_one_channel(c) && c.out_channels == c.groups && c.out_w() >= kVector &&
         c.width >= kVector && r.top >= 0 && r.left >= 0 && r.blocks.rows > 0;
}

bool is_depthwise_weight_grad(const ConvConfig& c) {
  if (is_small_square(c) || has_5x5_weights(c)) return true;
  // Other windows of a single channel are better off in tiles.
  return has_one_channel(c) && (c.groups > 1 || is_3x3_step(c)) && c.width >= kVector &&
         c.out_w() >= kVector && std::max(c.kernel_h, c.kernel_w) <= kDepthTaps &&
         forward_blocks(c, kDepthRows).rows > 0;
}

Plan plan_conv2d_depthwise(const ConvConfig& c, const ConvEpilogue& e) {
  if (is_small_square(c)) return plan_squares(c, e, false);
  if (is_halved(c)) return plan_halves(c, e);
  if (is_5x5_of_rows(c)) return plan_rows(c, e, false);
  if (reads_rows_in_place(c, e.has_residual)) return plan_rows(c, e, false);
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
  if (is_small_square(c)) return plan_squares(c, {}, true);
  if (is_halved(c)) return plan_halves_grad(c);
  if (is_5x5_of_rows(c)) return plan_rows(c, {}, true);
  if (reads_rows_in_place(c)) return plan_rows(c, {}, true);
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
  if (is_small_square(c)) return plan_weight_squares(c);
  if (reads_rows_in_place(c) || has_5x5_weights(c)) return plan_weight_rows(c);
  if (const Lines lines = weight_lines_of(c); lines.is_paired) return plan_weight_lines(c, lines);
  const Blocks blocks = forward_blocks(c, kDepthRows);
  Recorder recorder(kDirectAccess);
  const std::string kernel = is_3x3_step(c) ? "conv_depth_weight_3x3" : "conv_depth_weight";
  recorder.call(kernel, DeviceClass::kCpu,
                {number(c.stride_h), number(c.stride_w), number(c.dilation_h), number(c.dilation_w),
                 number(c.top), number(c.left), number(1), number(1), number(blocks.pitch),
                 number(blocks.rows), number(blocks.elements), planes(1, c, c.height, c.width),
                 blocked(0, c, c.out_channels / c.groups, blocks), weights(2, c)});
  return recorder.finish();
}

}  // namespace ballast::kernels
