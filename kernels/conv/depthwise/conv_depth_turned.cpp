#include "kernels/conv/depthwise/conv_depth_turned.h"

#include "kernels/conv/depthwise/conv_depth.h"
#include "kernels/conv/depthwise/conv_depth_operands.h"
#include "kernels/plan/registers.h"
#include "kernels/recipe/lanes.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

namespace ballast::kernels {
namespace {

using namespace depth;

// Of as many planes as there are lanes: the pixels of a block, which may be a row, and the rows of
// a strip. Without a kernel there are no rows.
struct Turned {
  int64_t lanes = kLanes / 2, columns = 0, rows = 0;
  bool is_row = false;
};

// Whether a row of results is one block.
bool is_one_block(const ConvConfig& c) {
  constexpr int64_t kRows[] = {7, 8};  // of the manifest's kernels
  return std::count(std::begin(kRows), std::end(kRows), c.out_w()) > 0;
}

// 5x5 two apart. Wide registers do not have to turn them.
bool is_turned_in_halves(const ConvConfig& c) {
  return !has_wide_registers() && halves_planes(c, 5);
}

// Results of a block, of which as few as can be are computed twice; 0 without a kernel. What is
// left for the last block keeps the windows of those before within the row.
int64_t columns_of(const ConvConfig& c) {
  constexpr int64_t kColumns[] = {7, 6, 5};  // of the manifest's kernels
  int64_t best = 0;
  const auto blocks = [&](int64_t columns) { return ceil_div(c.out_w(), columns); };
  for (int64_t columns : kColumns) {
    const int64_t left = c.out_w() - (blocks(columns) - 1) * columns;
    const bool fits = blocks(columns) > 1 && left >= c.kernel_w / 2;
    if (fits && (best == 0 || blocks(columns) * columns < blocks(best) * best)) best = columns;
  }
  return best;
}

// Rows of a strip: a divisor of the height, of which the nearest caches keep what they see.
int64_t rows_of(const ConvConfig& c, int64_t lanes) {
  constexpr int64_t kLeast = 4;  // or what lies around them is most of the work
  const int64_t height = c.out_h();
  const auto fits = [&](int64_t rows) {
    const int64_t seen = ((rows - 1) * c.stride_h + c.kernel_h) * c.width;
    return height % rows == 0 && rows * c.out_w() >= lanes && seen + lanes <= kDepthTurnedPlaces;
  };
  for (int64_t rows = height; rows >= std::min(height, kLeast) && rows > 0; --rows) {
    if (fits(rows)) return rows;
  }
  return 0;
}

// Sixteen planes are taken where a register holds them; of 5x5 towards the weights alone, as y and
// dx have blocks or pairs in registers instead.
Turned turned(const ConvConfig& c, bool is_weight) {
  Turned turned;
  const bool has_kernel = is_same(c, 5) || is_same(c, 7) || is_turned_in_halves(c);
  if (!has_kernel || c.in_channels != c.groups || c.out_channels != c.groups) return turned;
  turned.is_row = is_one_block(c);
  const bool has_wide_kernel = is_weight || c.kernel_w == 7;
  if (has_wide_registers() && has_wide_kernel) turned.lanes = kLanes;
  turned.columns = turned.is_row ? c.out_w() : columns_of(c);
  if (turned.columns > 0) turned.rows = rows_of(c, turned.lanes);
  return turned;
}

// Of a work-group, as long as there are work-groups for all.
int64_t images_of(const ConvConfig& c, const Turned& of) {
  constexpr int64_t kGroups = 32;
  const int64_t groups = ceil_div(c.groups, of.lanes) * (c.out_h() / of.rows);
  return ceil_div(c.batch, std::clamp<int64_t>(ceil_div(kGroups, groups), 1, c.batch));
}

std::string kernel_of(const std::string& name, const ConvConfig& c, const Turned& of) {
  return fmt::format("{}_{}_{}{}x{}{}", name, c.kernel_w, of.is_row ? "row_" : "", of.columns,
                     of.lanes, c.stride_w == 2 ? "_halved" : "");
}

// Dense planes of so many elements, as (element, plane, 1, n).
Operand lane_planes(uint32_t slot, const ConvConfig& c, int64_t batch, int64_t elements) {
  return dense_operand(slot, DType::kF32, {batch, 1, c.groups, elements});
}
Operand image_planes(uint32_t slot, const ConvConfig& c, int64_t height, int64_t width) {
  return lane_planes(slot, c, c.batch, height * width);
}

std::vector<HostArg> arguments(const ConvConfig& c, const Turned& of, uint32_t in) {
  return {number(c.out_w()), number(c.out_h()), number(of.rows),
          image_planes(in, c, c.height, c.width)};
}

// Of a block's pixels the places are a constant apart: one address for all of them.
SourceRules access_rules() {
  SourceRules rules = kDirectAccess;
  rules.direct_stack = true;
  return rules;
}

// y, or dx, which is that of flipped windows.
Plan plan(const ConvConfig& c, const ConvEpilogue& e, bool is_flipped) {
  const EpilogueOperands terms{e, {c.groups}};
  const Turned of = turned(c, /*is_weight=*/false);
  const int64_t strip = of.rows * c.out_w(), strips = c.out_h() / of.rows, plane = strips * strip;
  std::vector<HostArg> args = arguments(c, of, 0);
  args.insert(args.end(), {number(images_of(c, of)), number(is_flipped),
                           lane_planes(1, c, 1, c.kernel_h * c.kernel_w)});
  const Operand out{terms.out,
                    DType::kF32,
                    {strip, strips, c.groups, c.batch},
                    {1, strip, plane, c.groups * plane},
                    {}};
  Recorder recorder(access_rules());
  call_with_epilogue(recorder, kernel_of("conv_depth_turned", c, of), args, terms, out);
  return recorder.finish();
}

}  // namespace

bool is_turned(const ConvConfig& c) {
  return c.stride_w == 1 && turned(c, /*is_weight=*/true).rows > 0;
}

bool is_turned_halved(const ConvConfig& c) {
  return c.stride_w == 2 && turned(c, /*is_weight=*/false).rows > 0;
}

bool turns_short_rows(const ConvConfig& c) { return c.width <= kLanes / 2 && is_turned(c); }

Plan plan_conv2d_turned(const ConvConfig& c, const ConvEpilogue& e) { return plan(c, e, false); }

Plan plan_conv2d_input_grad_turned(const ConvConfig& c) { return plan(c, {}, true); }

Plan plan_conv2d_weight_grad_turned(const ConvConfig& c) {
  const Turned of = turned(c, /*is_weight=*/true);
  std::vector<HostArg> args = arguments(c, of, 1);
  args.insert(args.end(), {image_planes(0, c, c.out_h(), c.out_w()), windows(2, c)});
  Recorder recorder(access_rules());
  recorder.call(kernel_of("conv_depth_weight_turned", c, of), DeviceClass::kCpu, args);
  return recorder.finish();
}

}  // namespace ballast::kernels
