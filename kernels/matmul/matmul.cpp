// Chooses how a product is computed: which operand's lanes become vectors, in which tiles, and
// whether they are packed first. The kernels are described in matmul_generator.cpp.
#include "kernels/halide_runtime.h"
#include "kernels/kernels.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

namespace ballast::kernels {
namespace {

using device::Code;
using device::fail;

constexpr int64_t kLanes = 16;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// One operand: `extent` rows of A (or columns of B), each a vector over k.
struct Side {
  uint32_t slot = 0;
  int64_t extent = 0;
  int64_t stride = 0;    // between neighbours
  int64_t k_stride = 0;  // along k
};

struct Tile {
  const char* name;
  int64_t rows, vectors;
  bool stores_vectors;
  int64_t lanes() const { return vectors * kLanes; }
};
constexpr Tile kTiles[] = {
    {"6x64", 6, 4, true}, {"8x48", 8, 3, true}, {"6x64_strided", 6, 4, false}};

enum class Pack { kNone, kRows, kColumns, kElements };

struct Choice {
  bool swapped = false;        // compute C^T = B^T A^T: the lanes are A's rows
  const Tile* tile = nullptr;  // nullptr: the general kernel
  Pack pack = Pack::kNone;
  double nanoseconds = 0;
};

// The product as the kernels see it, before a choice is made.
struct Problem {
  const MatmulConfig& config;
  Side a, b;
  const Side& broadcast(const Choice& c) const { return c.swapped ? b : a; }
  const Side& vectors(const Choice& c) const { return c.swapped ? a : b; }
};

Problem make_problem(const MatmulConfig& c) {
  const Side a{0, c.m, c.transpose_a ? 1 : c.k, c.transpose_a ? c.m : 1};
  const Side b{1, c.n, c.transpose_b ? c.k : 1, c.transpose_b ? 1 : c.n};
  return {c, a, b};
}

// ---- the choice: the least estimated time. The figures are those of the machine the schedules
// were measured on; only their ratios matter. The epilogue must not enter: fused and unfused
// products have to take the same path.

constexpr double kLaunchNs = 2500;
constexpr double kMultiplyAddNs = 1 / 240.0;        // in a full tile
constexpr double kGeneralMultiplyAddNs = 1 / 25.0;  // gathers its vectors
constexpr double kScalarStoreNs = 0.1;
// Rows a multiple of 4 KiB apart share their cache sets: a panel read over and over is evicted.
constexpr double kAliasingPenalty = 1.2;

double pack_ns(Pack pack) {
  switch (pack) {
    case Pack::kNone:
      return 0;
    case Pack::kRows:
      return 0.13;
    case Pack::kColumns:
      return 0.18;
    case Pack::kElements:
      return 0.35;
  }
  return 0;
}

bool can_read_directly(const Side& side) { return side.stride == 1 && side.extent % kLanes == 0; }

Pack packing_of(const Side& side, int64_t k) {
  if (can_read_directly(side)) return Pack::kRows;
  return side.k_stride == 1 && k % kLanes == 0 ? Pack::kColumns : Pack::kElements;
}

double tile_ns(const Problem& p, const Choice& c) {
  const Side &rows = p.broadcast(c), &lanes = p.vectors(c);
  const double k = p.config.k;
  const double padded_lanes = ceil_div(lanes.extent, c.tile->lanes()) * c.tile->lanes();
  const double padded_rows = ceil_div(rows.extent, c.tile->rows) * c.tile->rows;
  double ns = kLaunchNs + padded_rows * padded_lanes * k * kMultiplyAddNs;
  if (c.pack == Pack::kNone && lanes.k_stride % 1024 == 0 && k >= 256) ns *= kAliasingPenalty;
  if (c.pack != Pack::kNone) ns += kLaunchNs + padded_lanes * k * pack_ns(c.pack);
  if (!c.tile->stores_vectors) ns += kScalarStoreNs * rows.extent * lanes.extent;
  return ns;
}

double general_ns(const Problem& p, const Choice& c) {
  constexpr int64_t kRows = 4;
  return kLaunchNs + ceil_div(p.broadcast(c).extent, kRows) * kRows *
                         ceil_div(p.vectors(c).extent, kLanes) * kLanes * double(p.config.k) *
                         kGeneralMultiplyAddNs;
}

Choice choose(DeviceClass device_class, const Problem& p) {
  std::vector<Choice> choices{{false}};
  if (device_class == DeviceClass::kGpu) return choices[0];
  choices.push_back({true});
  for (Choice& c : choices) c.nanoseconds = general_ns(p, c);
  const int64_t k = p.config.k;
  for (bool swapped : {false, true}) {
    for (const Tile& tile : kTiles) {
      Choice c{swapped, &tile};
      const Side& lanes = p.vectors(c);
      if (k == 0 || (tile.stores_vectors && (swapped || lanes.extent % kLanes != 0))) continue;
      for (Pack pack : {Pack::kNone, packing_of(lanes, k)}) {
        c.pack = pack;
        if (pack == Pack::kNone && !can_read_directly(lanes)) continue;
        c.nanoseconds = tile_ns(p, c);
        choices.push_back(c);
      }
    }
  }
  return *std::min_element(choices.begin(), choices.end(), [](const Choice& x, const Choice& y) {
    return x.nanoseconds < y.nanoseconds;
  });
}

// ---- the launches

std::string epilogue_name(const MatmulConfig& config) {
  return config.activation + (config.has_bias ? "_bias" : "");
}

// A matrix over C's coordinates (row, column strides) as the kernel indexes it.
Operand over_output(const Problem& p, const Choice& c, uint32_t slot, int64_t row_stride,
                    int64_t column_stride) {
  const int64_t m = p.config.m, n = p.config.n;
  if (c.tile != nullptr && c.tile->stores_vectors) {
    return {slot, DType::kF32, {kLanes, n / kLanes, m}, {1, kLanes, row_stride}, {}};
  }
  if (c.swapped) return {slot, DType::kF32, {m, n}, {row_stride, column_stride}, {}};
  return {slot, DType::kF32, {n, m}, {column_stride, row_stride}, {}};
}

struct Slots {
  uint32_t bias = 2, y = 2, output = 2, workspace = 3;
  explicit Slots(const MatmulConfig& config) {
    y = bias + (config.has_bias ? 1 : 0);
    output = y + (config.activation == "relu_grad" ? 1 : 0);
    workspace = output + 1;
  }
};

// Appends the launch that packs, and returns the panels as matmul_tiles takes them.
Operand pack_panels(Recorder& recorder, const Problem& p, const Choice& c, uint32_t workspace) {
  const Side& side = p.vectors(c);
  const int64_t k = p.config.k, vectors = c.tile->vectors, width = c.tile->lanes();
  const int64_t panel_count = ceil_div(side.extent, width);
  const Operand source{side.slot, DType::kF32, {side.extent, k}, {side.stride, side.k_stride}, {}};
  const Operand panels{
      workspace, DType::kF32, {kLanes, vectors, k, panel_count}, {1, kLanes, width, width * k}, {}};
  Operand target = panels;
  std::string kernel = "matmul_pack";
  if (c.pack == Pack::kRows) kernel += "_rows";
  if (c.pack == Pack::kColumns) {
    kernel += "_columns";
    target.extents = {kLanes, kLanes, vectors, k / kLanes, panel_count};
    target.strides = {1, width, kLanes, width * kLanes, width * k};
  }
  recorder.call(aot_kernel(kernel, DeviceClass::kCpu), kernel,
                {source, static_cast<int32_t>(vectors), target});
  return panels;
}

void check(const MatmulConfig& config) {
  constexpr std::array<const char*, 3> kActivations = {"none", "relu", "relu_grad"};
  if (std::find(kActivations.begin(), kActivations.end(), config.activation) ==
      kActivations.end()) {
    fail(Code::kInvalidArgument, "[matmul] activation is \"{}\", expected none, relu or relu_grad",
         config.activation);
  }
  if (config.m < 0 || config.n < 0 || config.k < 0) {
    fail(Code::kInvalidArgument, "[matmul] sizes are m = {}, n = {}, k = {}, expected none below 0",
         config.m, config.n, config.k);
  }
}

}  // namespace

Plan plan_matmul(DeviceClass device_class, const MatmulConfig& config) {
  check(config);
  if (config.m == 0 || config.n == 0) return {};
  const Problem p = make_problem(config);
  const Choice c = choose(device_class, p);
  const Side &rows = p.broadcast(c), &lanes = p.vectors(c);
  const Slots slots(config);
  const int64_t k = config.k;
  Recorder recorder(SourceRules{/*fp_contract=*/false, /*may_alias=*/false});
  uint64_t workspace_bytes = 0;

  std::vector<HostArg> args;
  args.push_back(
      Operand{rows.slot, DType::kF32, {k, rows.extent}, {rows.k_stride, rows.stride}, {}});
  std::string kernel = "matmul_general_";
  if (c.tile == nullptr) {
    args.push_back(
        Operand{lanes.slot, DType::kF32, {lanes.extent, k}, {lanes.stride, lanes.k_stride}, {}});
  } else {
    kernel = fmt::format("matmul_{}_", c.tile->name);
    const int64_t width = c.tile->lanes(), panel_count = ceil_div(lanes.extent, width);
    if (c.pack == Pack::kNone) {
      args.push_back(Operand{lanes.slot,
                             DType::kF32,
                             {kLanes, c.tile->vectors, k, panel_count},
                             {1, kLanes, lanes.k_stride, width},
                             {}});
    } else {
      args.push_back(pack_panels(recorder, p, c, slots.workspace));
      workspace_bytes = panel_count * width * k * sizeof(float);
    }
    // Enough groups to share out among the cores, few enough to keep what a group costs small.
    const int64_t row_tiles = ceil_div(rows.extent, c.tile->rows);
    const int64_t tiles_per_group = std::clamp<int64_t>(row_tiles * panel_count / 128, 1, 8);
    args.push_back(static_cast<int32_t>(ceil_div(lanes.extent, kLanes)));
    args.push_back(static_cast<int32_t>(tiles_per_group));
  }
  if (config.has_bias) args.push_back(over_output(p, c, slots.bias, 0, 1));
  if (config.activation == "relu_grad") args.push_back(over_output(p, c, slots.y, config.n, 1));
  args.push_back(over_output(p, c, slots.output, config.n, 1));
  kernel += epilogue_name(config);
  recorder.call(aot_kernel(kernel, device_class), kernel, args);
  return recorder.finish(workspace_bytes);
}

}  // namespace ballast::kernels
