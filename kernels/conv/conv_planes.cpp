#include "kernels/conv/conv_planes.h"

#include "kernels/conv/conv_tiles.h"

#include <algorithm>

namespace ballast::kernels {
namespace {

constexpr int64_t kLanes = 16, kTilePixels = kPlaneVectors * kLanes;

// A convolution of x [batch, groups * channels, in_h, in_w] to [batch, groups * lanes, out_h,
// out_w].
struct Problem {
  int64_t batch, groups, channels, lanes, in_h, in_w, out_h, out_w;
  int64_t kernel_h, kernel_w, stride_h, stride_w, dilation_h, dilation_w, top, left;
  int64_t in_step, out_step, group_step, first_tap, tap_step;  // of the weights

  int64_t reach_h() const { return (kernel_h - 1) * dilation_h / stride_h; }
  int64_t reach_w() const { return (kernel_w - 1) * dilation_w / stride_w; }
  int64_t phases() const { return stride_h * stride_w; }
  int64_t taps() const { return kernel_h * kernel_w * channels; }
};

// How a problem is cut into work-groups.
struct Cut {
  int64_t pitch, rows = 0, plane, tiles, elements, blocks;
  int64_t parts, tiles_per_part;
};

Cut cut_rows(const Problem& p, int64_t pitch, int64_t rows) {
  Cut cut{pitch, rows};
  cut.plane = (rows + p.reach_h()) * pitch;
  cut.tiles = ceil_div((rows - 1) * pitch + p.out_w, kTilePixels);
  // Tiles read beyond the last row of results.
  const int64_t last = (p.channels * p.phases() - 1) * cut.plane + p.reach_h() * pitch +
                       p.reach_w() + cut.tiles * kTilePixels;
  const int64_t all = p.channels * p.phases() * cut.plane;
  cut.elements = ceil_div(std::max(last, all), kLanes) * kLanes;
  cut.blocks = ceil_div(p.out_h, rows);
  return cut;
}

// The rows that take the least work; none where no rows fit.
Cut cut_problem(const Problem& p) {
  const int64_t pitch = std::max(p.out_w + p.reach_w(), (p.left + p.in_w - 1) / p.stride_w + 1);
  Cut best{};
  int64_t least = 0;
  for (int64_t rows = 1; rows <= p.out_h; ++rows) {
    const Cut cut = cut_rows(p, pitch, rows);
    if (cut.elements > kPlaneElements || cut.tiles * kTilePixels > kPlanePixels) break;
    // Tiles, and vectors copied.
    const int64_t tile_work = cut.tiles * p.taps() * ceil_div(p.lanes, kPlaneRows) * 12;
    const int64_t work = cut.blocks * (tile_work + cut.elements / kLanes * 8);
    if (best.rows == 0 || work <= least) best = cut, least = work;
  }
  if (best.rows == 0) return best;
  constexpr int64_t kGroups = 8;
  const int64_t channel_tiles = ceil_div(p.lanes, kPlaneRows);
  const int64_t groups = best.blocks * p.batch * p.groups;
  best.parts = std::clamp<int64_t>(ceil_div(kGroups, groups), 1, channel_tiles);
  best.tiles_per_part = ceil_div(channel_tiles, best.parts);
  best.parts = ceil_div(channel_tiles, best.tiles_per_part);
  return best;
}

bool is_taken(const Problem& p) {
  if (p.top < 0 || p.left < 0 || p.taps() > kPlaneTaps || p.taps() == 0) return false;
  if (p.lanes < kPlaneRows || p.in_h == 0 || p.in_w == 0) return false;
  const Cut cut = cut_problem(p);
  if (cut.rows == 0) return false;
  const double useful = double(p.out_h * p.out_w) / double(cut.blocks * cut.tiles * kTilePixels);
  return useful >= 0.7;
}

Problem forward(const ConvConfig& c) {
  const int64_t in = c.in_channels / c.groups, out = c.out_channels / c.groups,
                taps = c.kernel_h * c.kernel_w;
  return {c.batch,
          c.groups,
          in,
          out,
          c.height,
          c.width,
          c.out_h(),
          c.out_w(),
          c.kernel_h,
          c.kernel_w,
          c.stride_h,
          c.stride_w,
          c.dilation_h,
          c.dilation_w,
          c.top,
          c.left,
          taps,
          in * taps,
          out * in * taps,
          0,
          1};
}

// With stride 1, dx is the convolution of dy with the window flipped.
Problem input_grad(const ConvConfig& c) {
  const int64_t in = c.in_channels / c.groups, out = c.out_channels / c.groups,
                taps = c.kernel_h * c.kernel_w;
  return {c.batch,
          c.groups,
          out,
          in,
          c.out_h(),
          c.out_w(),
          c.height,
          c.width,
          c.kernel_h,
          c.kernel_w,
          1,
          1,
          c.dilation_h,
          c.dilation_w,
          (c.kernel_h - 1) * c.dilation_h - c.top,
          (c.kernel_w - 1) * c.dilation_w - c.left,
          in * taps,
          taps,
          out * in * taps,
          taps - 1,
          -1};
}

Operand planes(uint32_t slot, const Problem& p, int64_t channels, int64_t height, int64_t width) {
  return dense_operand(slot, DType::kF32, {p.batch, p.groups, channels, height, width});
}

// The weights, in slot 1, as conv_planes reads them.
Operand pack_weights(Recorder& recorder, Workspace& scratch, const Problem& p) {
  const int64_t window = p.kernel_h * p.kernel_w, tiles = ceil_div(p.lanes, kPlaneRows);
  const int64_t tile = p.taps() * kPlaneRows;
  const uint32_t slot = scratch.add_floats(p.groups * tiles * tile);
  recorder.call(aot_kernel("conv_plane_weights", DeviceClass::kCpu), "conv_plane_weights",
                {number(p.first_tap), number(p.tap_step),
                 Operand{1,
                         DType::kF32,
                         {window, p.channels, p.lanes, p.groups},
                         {1, p.in_step, p.out_step, p.group_step},
                         {}},
                 Operand{slot,
                         DType::kF32,
                         {kPlaneRows, window, p.channels, tiles, p.groups},
                         {1, kPlaneRows, window * kPlaneRows, tile, tiles * tile},
                         {}}});
  return {slot,
          DType::kF32,
          {kPlaneRows, p.taps(), tiles, p.groups},
          {1, kPlaneRows, tile, tiles * tile},
          {}};
}

// Inputs in slots 0 and 1.
Plan plan_planes(const Problem& p, const ConvEpilogue& e) {
  const Cut cut = cut_problem(p);
  uint32_t slot = 2;
  const auto per_channel = [&](bool is_given) {
    const int64_t step = is_given ? 1 : 0;
    return Operand{
        is_given ? slot++ : 1, DType::kF32, {p.lanes, p.groups}, {step, step * p.lanes}, {}};
  };
  const Operand bias = per_channel(e.has_bias), scale = per_channel(e.has_scale),
                shift = per_channel(e.has_scale);
  Operand residual = planes(e.has_residual ? slot++ : 1, p, p.lanes, p.out_h, p.out_w);
  if (!e.has_residual) residual.strides.assign(5, 0);
  Recorder recorder(SourceRules{false, /*may_alias=*/false, /*direct_access=*/true});
  Workspace scratch(slot + 1);
  const Operand weights = pack_weights(recorder, scratch, p);
  std::vector<HostArg> args;
  for (int64_t value : {p.stride_h, p.stride_w, p.dilation_h, p.dilation_w, p.top, p.left,
                        p.kernel_h, p.kernel_w, cut.pitch, cut.plane, cut.rows, cut.elements,
                        cut.tiles, std::min(kLanes, p.out_w) - 1, cut.parts, cut.tiles_per_part}) {
    args.push_back(number(value));
  }
  args.insert(args.end(),
              {planes(0, p, p.channels, p.in_h, p.in_w), weights, bias, scale, shift, residual,
               number(e.has_bias), number(e.has_scale), number(e.has_residual), number(e.has_relu),
               planes(slot, p, p.lanes, p.out_h, p.out_w)});
  recorder.call(aot_kernel("conv_planes", DeviceClass::kCpu), "conv_planes", args);
  return recorder.finish(scratch);
}

}  // namespace

bool is_planes(const ConvConfig& c) { return is_taken(forward(c)); }
bool is_planes_input_grad(const ConvConfig& c) {
  return c.stride_h == 1 && c.stride_w == 1 && is_taken(input_grad(c));
}

Plan plan_conv2d_planes(const ConvConfig& c, const ConvEpilogue& e) {
  return plan_planes(forward(c), e);
}

Plan plan_conv2d_input_grad_planes(const ConvConfig& c) { return plan_planes(input_grad(c), {}); }

}  // namespace ballast::kernels
