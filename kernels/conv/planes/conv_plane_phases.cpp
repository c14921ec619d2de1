#include "kernels/conv/planes/conv_plane_phases.h"

#include "kernels/conv/conv_arguments.h"
#include "kernels/conv/conv_phases.h"
#include "kernels/conv/conv_problem.h"
#include "kernels/conv/planes/conv_planes.h"
#include "kernels/plan/registers.h"
#include "kernels/plan/workspace.h"
#include "kernels/recipe/lanes.h"

#include <algorithm>
#include <vector>

namespace ballast::kernels {
namespace {

constexpr int64_t kTileChannels = 64, kTilePixels = 6;

struct Axes {
  Phases rows, columns;
  explicit Axes(const ConvConfig& c)
      : rows(c.top, c.kernel_h, 2, c.height / 2), columns(c.left, c.kernel_w, 2, c.width / 2) {}
};

// How dx is cut into work-groups, in rows of a phase.
struct Cut {
  int64_t pitch, rows, plane, elements, tiles, blocks;
};

// The rows that take the least work; none where no rows fit.
Cut cut_rows(const ConvConfig& c, const Axes& axes) {
  const int64_t height = c.height / 2, width = c.width / 2, channels = c.out_channels / c.groups;
  const int64_t pitch = std::max(axes.columns.extent, axes.columns.before + c.out_w());
  Cut best{};
  int64_t least = 0;
  for (int64_t rows = 1; rows <= height; ++rows) {
    Cut cut{pitch, rows, (rows + axes.rows.extent - height) * pitch};
    cut.tiles = ceil_div((rows - 1) * pitch + width, kTilePixels);
    cut.blocks = ceil_div(height, rows);
    // Tiles read beyond the last row.
    const int64_t beyond = cut.tiles * kTilePixels - rows * pitch + axes.columns.extent - width;
    const int64_t all = channels * cut.plane + std::max<int64_t>(beyond, 0);
    cut.elements = ceil_div(all, kLanes) * kLanes;
    if (cut.elements > kPlaneElements || cut.tiles * kTilePixels > kPhasePixels) break;
    // Tiles, and vectors copied.
    const int64_t tile_work = cut.tiles * channels * c.kernel_h * c.kernel_w *
                              ceil_div(c.in_channels / c.groups, kTileChannels) * 12;
    const int64_t work = cut.blocks * (tile_work + cut.elements / kLanes * 8);
    if (least == 0 || work <= least) best = cut, least = work;
  }
  return best;
}

// Taps of the phase that has most, in all channels.
int64_t most_taps(const ConvConfig& c) {
  return ceil_div(c.kernel_h, 2) * ceil_div(c.kernel_w, 2) * (c.out_channels / c.groups);
}

// Of one length, whose weights take half of the nearest cache.
int64_t chunk_taps(const ConvConfig& c) {
  constexpr int64_t kMost = 96;
  return ceil_div(most_taps(c), ceil_div(most_taps(c), kMost));
}

}  // namespace

bool is_plane_phases_input_grad(const ConvConfig& c) {
  constexpr int64_t kLeastChannels = 64;  // of dy, for what is transposed
  if (!has_wide_registers()) return false;
  if (c.stride_h != 2 || c.stride_w != 2 || c.dilation_h != 1 || c.dilation_w != 1) return false;
  if (c.height % 2 != 0 || c.width % 2 != 0 || c.width < kLanes || c.batch == 0) return false;
  const int64_t inputs = c.out_channels / c.groups, outputs = c.in_channels / c.groups;
  if (outputs < kTileChannels || inputs < kLeastChannels || c.out_h() == 0 || c.out_w() == 0) {
    return false;
  }
  if (!fills_tiles(outputs, kTileChannels)) return false;
  const Axes axes(c);
  if (axes.rows.has_empty || axes.columns.has_empty) return false;
  if (most_taps(c) > kPhaseTaps) return false;
  const Cut cut = cut_rows(c, axes);
  // Where more is computed for the gaps between rows, conv_tiles is as fast.
  return cut.rows > 0 && has_few_gaps(c.height * c.width / 4, cut.blocks * cut.tiles * kTilePixels);
}

Plan plan_conv2d_input_grad_plane_phases(const ConvConfig& c) {
  const Axes axes(c);
  const Cut cut = cut_rows(c, axes);
  const int64_t inputs = c.out_channels / c.groups, outputs = c.in_channels / c.groups,
                window = c.kernel_h * c.kernel_w, taps = window * inputs;
  const int64_t tiles = ceil_div(outputs, kTileChannels);
  Recorder recorder(kDirectAccess);
  Workspace scratch(3);
  const Operand weights = dense_operand(scratch.add_floats(c.groups * tiles * taps * kTileChannels),
                                        DType::kF32, {c.groups, tiles, taps, kTileChannels});
  const std::vector<Phase>&rows = axes.rows.all, &columns = axes.columns.all;
  const std::vector<HostArg> counts{number(rows[0].count), number(rows[1].count),
                                    number(columns[0].count), number(columns[1].count)};
  std::vector<HostArg> packing{number(rows[0].first), number(rows[1].first),
                               number(columns[0].first), number(columns[1].first)};
  packing.insert(packing.end(), counts.begin(), counts.end());
  packing.insert(packing.end(), {dense_operand(1, DType::kF32,
                                               {c.groups, inputs, outputs, c.kernel_h, c.kernel_w}),
                                 weights});
  recorder.call("conv_phase_taps", DeviceClass::kCpu, packing);

  const ChannelParts parts = share_channels(cut.blocks * c.batch * c.groups, tiles);
  std::vector<HostArg> args;
  for (int64_t value : {axes.rows.before, axes.columns.before, cut.pitch, cut.plane, cut.rows,
                        cut.elements, cut.tiles, parts.count, parts.tiles}) {
    args.push_back(number(value));
  }
  const auto planes = [&](uint32_t slot, int64_t channels, int64_t height, int64_t width) {
    return dense_operand(slot, DType::kF32, {c.batch, c.groups, channels, height, width});
  };
  const Operand dx = planes(2, outputs, c.height, c.width);
  args.insert(args.end(), {planes(0, inputs, c.out_h(), c.out_w()), weights});
  EpilogueOperands({}, {outputs, c.groups}).append_to(args, dx);
  args.insert(args.end(), counts.begin(), counts.end());
  for (int which : {0, 1}) args.push_back(number(axes.rows.begin(rows[which])));
  for (int which : {0, 1}) args.push_back(number(axes.columns.begin(columns[which])));
  args.insert(
      args.end(),
      {number(chunk_taps(c)),
       dense_operand(2, DType::kF32, {c.batch, c.groups, outputs, c.height * c.width}), dx});
  recorder.call("conv_plane_phases_6x4", DeviceClass::kCpu, args);
  return recorder.finish(scratch);
}

}  // namespace ballast::kernels
