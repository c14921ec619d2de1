#include "kernels/conv/depthwise/conv_depth_in_place.h"

#include "kernels/conv/depthwise/conv_depth.h"
#include "kernels/conv/depthwise/conv_depth_operands.h"
#include "kernels/conv/depthwise/conv_depth_turned.h"
#include "kernels/plan/registers.h"
#include "kernels/plan/streaming.h"
#include "kernels/recipe/lanes.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace ballast::kernels {
namespace {

using namespace depth;

// Of a row's vectors: eight fit more rows where registers hold no more, or are computed by halves;
// not for 5x5 there, which would take twice the instructions.
int64_t row_lanes(const ConvConfig& c) {
  const bool is_wide = has_wide_registers() && (!halves_wide_registers() || c.kernel_w == 5);
  return is_wide ? kLanes : kLanes / 2;
}

// For conv_depth_rows.
bool has_rows(const ConvConfig& c) {
  return has_one_channel(c) && is_same(c, 3) && c.height >= kDepthRows && c.width >= row_lanes(c) &&
         c.width <= kDepthRowsPixels;
}

// Where the last cache keeps what goes in and out. Elsewhere whole lines, which may go past it, are
// the better results, but for short rows of which a wide unit's caches keep much.
bool reads_rows(const ConvConfig& c, bool has_residual) {
  constexpr int64_t kBytesOfShortRows = 16 << 20;
  const int64_t pixels = c.height * c.width * c.batch;
  const int64_t elements = pixels * (c.in_channels + (has_residual ? 2 : 1) * c.out_channels);
  const bool is_short = has_wide_units() && c.width <= 2 * kLanes;
  return has_rows(c) &&
         elements * 4 <= std::max(last_cache_bytes(), is_short ? kBytesOfShortRows : 0);
}

// Towards the weights results are few: with wide units in any case.
bool has_rows_of_weights(const ConvConfig& c) {
  return reads_rows(c, false) || (has_wide_units() && has_rows(c));
}

// The same for 5x5, without a kernel of lines. Windows of a row's last vector must not reach over
// the row's begin, nor those of the one before over its end.
bool is_5x5_of_rows(const ConvConfig& c) {
  return has_one_channel(c) && is_same(c, 5) && c.height >= kDepthRows && c.width >= row_lanes(c) &&
         c.width <= kDepthRows5x5 && c.width != row_lanes(c) + 1;
}

// Its weight gradient: 25 sums in registers, for each output channel on its own.
bool has_5x5_weights(const ConvConfig& c) {
  constexpr int64_t kMostOutputs = 8;
  return is_5x5_of_rows(c) && has_wide_registers() && c.out_channels <= kMostOutputs * c.groups;
}

// Squares of which the manifest has kernels.
bool is_square(const ConvConfig& c) {
  constexpr int64_t kSides[] = {6, 7, 8, 10, 12, 13, 14};
  return c.height == c.width && std::count(std::begin(kSides), std::end(kSides), c.width) > 0;
}

// For conv_depth_squares: a row is a register. With AVX2 5x5 of more than 6 is turned instead.
bool is_small_square(const ConvConfig& c) {
  const int64_t narrow = c.kernel_w == 3 ? kLanes / 2 : 6;
  return (is_same(c, 3) || is_same(c, 5)) && c.in_channels == c.groups &&
         c.out_channels == c.groups && is_square(c) && (has_wide_registers() || c.width <= narrow);
}
// Towards the weights: their sums are in registers.
bool has_square_weights(const ConvConfig& c) {
  return is_small_square(c) && (c.kernel_w == 3 || (has_wide_registers() && !turns_short_rows(c)));
}

// For conv_depth_halves.
bool halves_rows(const ConvConfig& c, int64_t window, int64_t lanes) {
  return halves_planes(c, window) && c.out_h() >= kDepthRows && c.out_w() >= lanes;
}
bool is_halved(const ConvConfig& c) { return halves_rows(c, 3, kLanes / 2); }
bool is_5x5_halved(const ConvConfig& c) {
  return has_wide_registers() && halves_rows(c, 5, kLanes);
}

// For conv_depth_steps: of sides of results of which the manifest has kernels, a row of which is a
// register.
bool is_halved_square(const ConvConfig& c) {
  constexpr int64_t kSides[] = {7, 8, 10, 12, 14, 16};
  const int64_t side = c.out_w();
  return (halves_planes(c, 3) || halves_planes(c, 5)) && c.out_h() == side &&
         std::count(std::begin(kSides), std::end(kSides), side) > 0 &&
         (has_wide_registers() || side <= kLanes / 2);
}
// Towards the weights: with narrow registers planes of 5x5 are turned.
bool has_halved_square_weights(const ConvConfig& c) {
  return is_halved_square(c) && (has_wide_registers() || c.kernel_w == 3);
}

// 3x3 on rows with a lane to spare in vectors of eight has one in each: wide ones hold two, so that
// what lies above and below is a shuffle too.
std::string squares_kernel(const std::string& name, const ConvConfig& c) {
  const bool is_short = c.kernel_w == 3 && c.width < kLanes / 2;
  return fmt::format("{}_{}x{}_{}{}", name, c.kernel_w, c.kernel_h, c.width,
                     is_short || !has_wide_registers() ? "_narrow" : "");
}

// For conv_depth_pairs: two planes side by side.
bool is_paired(const ConvConfig& c) {
  return has_wide_registers() && c.out_w() <= kLanes / 2 && c.groups % 2 == 0;
}

// Planes of x, or of results, in pairs, as (a plane's elements, half, pair, n).
Operand pair_planes(uint32_t slot, const ConvConfig& c) {
  return dense_operand(slot, DType::kF32, {c.batch, c.groups / 2, 2, c.height * c.width});
}
Operand pair_results(uint32_t slot, const ConvConfig& c) {
  return dense_operand(slot, DType::kF32, {c.batch, c.groups / 2, 2, c.out_h() * c.out_w()});
}
Operand pair_windows(uint32_t slot, const ConvConfig& c) {
  return dense_operand(slot, DType::kF32, {c.groups / 2, 2, c.kernel_h, c.kernel_w});
}
std::string pairs_kernel(const std::string& name, const ConvConfig& c) {
  return fmt::format("{}{}_{}x{}_{}", name, c.stride_w == 2 ? "_step_pairs" : "_pairs", c.kernel_w,
                     c.kernel_h, c.out_w());
}

// Of a work-group, as many of all as leave so many work-groups, and its images.
constexpr int64_t kPairGroups = 32;
int64_t pairs_of_group(int64_t pairs) {
  return std::clamp<int64_t>(pairs / kPairGroups, 1, kDepthPairs);
}
int64_t images_of_group(const ConvConfig& c, int64_t pairs) {
  const int64_t groups = ceil_div(c.groups / 2, pairs);
  return ceil_div(c.batch, std::clamp<int64_t>(ceil_div(kPairGroups, groups), 1, c.batch));
}

// y, or dx, which is that of flipped windows.
Plan plan_pairs(const ConvConfig& c, const ConvEpilogue& e, bool is_flipped) {
  const EpilogueOperands terms{e, {2, c.groups / 2}};
  const int64_t pairs = pairs_of_group(c.groups / 2 * c.batch);
  Recorder recorder(kDirectAccess);
  call_with_epilogue(recorder, pairs_kernel("conv_depth", c),
                     {number(pairs), pair_planes(0, c), number(images_of_group(c, pairs)),
                      number(is_flipped), pair_windows(1, c)},
                     terms, pair_results(terms.out, c));
  return recorder.finish();
}

Plan plan_weight_pairs(const ConvConfig& c) {
  Recorder recorder(kDirectAccess);
  recorder.call(pairs_kernel("conv_depth_weight", c), DeviceClass::kCpu,
                {number(pairs_of_group(c.groups / 2)), pair_planes(1, c), pair_results(0, c),
                 pair_windows(2, c)});
  return recorder.finish();
}

// y, or dx, which is that of flipped windows.
Plan plan_squares(const ConvConfig& c, const ConvEpilogue& e, bool is_flipped) {
  if (is_paired(c)) return plan_pairs(c, e, is_flipped);
  const EpilogueOperands terms{e, {c.groups}};
  Recorder recorder(kDirectAccess);
  call_with_epilogue(
      recorder, squares_kernel("conv_depth_squares", c),
      {flat_planes(0, c), number(planes_of_group(c, 1)), number(is_flipped), windows(1, c)}, terms,
      flat_planes(terms.out, c));
  return recorder.finish();
}

// Of a work-group towards the weights: about a page in each image, as long as there are work-groups
// for all.
int64_t weight_planes(const ConvConfig& c) {
  constexpr int64_t kPixels = 1024, kGroups = 32;
  const int64_t most = std::min<int64_t>(kDepthWeightPlanes, c.groups / kGroups);
  return std::clamp<int64_t>(kPixels / (c.height * c.width), 1, std::max<int64_t>(most, 1));
}

Plan plan_weight_squares(const ConvConfig& c) {
  if (is_paired(c) && c.kernel_w == 3) return plan_weight_pairs(c);
  Recorder recorder(kDirectAccess);
  recorder.call(squares_kernel("conv_depth_weight_squares", c), DeviceClass::kCpu,
                {flat_planes(1, c), flat_planes(0, c), number(weight_planes(c)), windows(2, c)});
  return recorder.finish();
}

std::string steps_kernel(const std::string& name, const ConvConfig& c) {
  return fmt::format("{}_{}x{}_{}{}", name, c.kernel_w, c.kernel_h, c.out_w(),
                     has_wide_registers() ? "" : "_narrow");
}

Plan plan_steps(const ConvConfig& c, const ConvEpilogue& e) {
  if (is_paired(c) && c.kernel_w == 5) return plan_pairs(c, e, false);
  const EpilogueOperands terms{e, {c.groups}};
  Recorder recorder(kDirectAccess);
  call_with_epilogue(recorder, steps_kernel("conv_depth_steps", c),
                     {flat_planes(0, c), number(planes_of_group(c, 1)), number(0), windows(1, c)},
                     terms, flat_results(terms.out, c));
  return recorder.finish();
}

Plan plan_steps_grad(const ConvConfig& c) {
  Recorder recorder(kDirectAccess);
  recorder.call(
      steps_kernel("conv_depth_steps_grad", c), DeviceClass::kCpu,
      {flat_results(0, c), windows(1, c), number(planes_of_group(c, 1)), flat_planes(2, c)});
  return recorder.finish();
}

Plan plan_weight_steps(const ConvConfig& c) {
  if (is_paired(c)) return plan_weight_pairs(c);
  Recorder recorder(kDirectAccess);
  recorder.call(steps_kernel("conv_depth_weight_steps", c), DeviceClass::kCpu,
                {flat_planes(1, c), flat_results(0, c), number(weight_planes(c)), windows(2, c)});
  return recorder.finish();
}

std::string halves_kernel(const std::string& name, const ConvConfig& c) {
  const bool is_wide = has_wide_registers() && c.out_w() >= kLanes;
  const char* window = c.kernel_w == 5 ? "_5x5" : "";
  return fmt::format("{}{}_{}", name, window, is_wide ? kLanes : kLanes / 2);
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

Plan plan_weight_halves(const ConvConfig& c) {
  Recorder recorder(kDirectAccess);
  recorder.call(halves_kernel("conv_depth_halves_weight", c), DeviceClass::kCpu,
                {number(c.out_w()), flat_planes(1, c), flat_results(0, c), windows(2, c)});
  return recorder.finish();
}

// The kernel for rows of so many vectors, or for squares of two of 8 lanes, and its first
// arguments.
std::string rows_kernel(const std::string& name, const ConvConfig& c) {
  const int64_t lanes = row_lanes(c);
  const char* window = c.kernel_w == 5 ? "_5x5" : "";
  const bool has_own =
      is_square(c) && c.kernel_w == 3 && !has_wide_registers() && c.width > kLanes / 2;
  return fmt::format("{}{}_{}x{}{}", name, window, ceil_div(c.width, lanes), lanes,
                     has_own ? fmt::format("_{}", c.width) : "");
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
  Recorder recorder(kDirectAccess);
  recorder.call(rows_kernel("conv_depth_weight_rows", c), DeviceClass::kCpu, args);
  return recorder.finish();
}

}  // namespace

bool is_in_place(const ConvConfig& c, bool has_residual) {
  return is_small_square(c) || is_halved_square(c) || is_halved(c) || is_5x5_halved(c) ||
         is_5x5_of_rows(c) || reads_rows(c, has_residual);
}

bool is_in_place_input_grad(const ConvConfig& c) { return is_in_place(c) && !is_5x5_halved(c); }

bool is_in_place_weight_grad(const ConvConfig& c) {
  return has_square_weights(c) || has_halved_square_weights(c) || is_halved(c) ||
         has_5x5_weights(c) || has_rows_of_weights(c);
}

Plan plan_conv2d_in_place(const ConvConfig& c, const ConvEpilogue& e) {
  if (is_small_square(c)) return plan_squares(c, e, false);
  if (is_halved_square(c)) return plan_steps(c, e);
  return is_halved(c) || is_5x5_halved(c) ? plan_halves(c, e) : plan_rows(c, e, false);
}

Plan plan_conv2d_input_grad_in_place(const ConvConfig& c) {
  if (is_small_square(c)) return plan_squares(c, {}, true);
  if (is_halved_square(c)) return plan_steps_grad(c);
  return is_halved(c) ? plan_halves_grad(c) : plan_rows(c, {}, true);
}

Plan plan_conv2d_weight_grad_in_place(const ConvConfig& c) {
  if (has_square_weights(c)) return plan_weight_squares(c);
  if (has_halved_square_weights(c)) return plan_weight_steps(c);
  return is_halved(c) ? plan_weight_halves(c) : plan_weight_rows(c);
}

}  // namespace ballast::kernels
