// Chooses between the tiled kernels of CPUs (attention_tiles, attention_grad_tiles, with what they
// want packed) and the general ones, and lays out the workspace.
#include "kernels/halide_runtime.h"
#include "kernels/kernels.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace ballast::kernels {
namespace {

using device::Code;
using device::fail;
using Mask = AttentionConfig::Mask;

constexpr int64_t kLanes = 16;
constexpr int64_t kPanelLanes = 2 * kLanes;  // columns in a packed panel
constexpr int64_t kMaxDepth = 256;           // what the tiles have room for on their stack
constexpr int64_t kRows = 12;                // of a tile

int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }

void check(const AttentionConfig& c) {
  for (int64_t extent : {c.batch, c.heads, c.queries, c.keys, c.depth, c.value_depth}) {
    if (extent < 0) fail(Code::kInvalidArgument, "[attention] an extent is {}", extent);
  }
  const auto is_broadcast = [](int64_t mask, int64_t whole) { return mask == 1 || mask == whole; };
  if (!is_broadcast(c.mask_batch, c.batch) || !is_broadcast(c.mask_heads, c.heads) ||
      !is_broadcast(c.mask_queries, c.queries)) {
    fail(Code::kInvalidArgument, "[attention] a mask of [{}, {}, {}] does not fit [{}, {}, {}]",
         c.mask_batch, c.mask_heads, c.mask_queries, c.batch, c.heads, c.queries);
  }
}

// Query i attends to keys up to i + diagonal.
int32_t diagonal_of(const AttentionConfig& c) {
  return static_cast<int32_t>(c.causal ? 0 : c.keys);
}

// Dense, innermost dimension first.
Operand dense(uint32_t slot, std::vector<int64_t> extents) {
  return dense_operand(slot, DType::kF32, Shape(extents.rbegin(), extents.rend()));
}

// What the plans below share: the recorder, the workspace, and operands in the kernels' layouts.
class Builder {
 public:
  Builder(DeviceClass device_class, const AttentionConfig& config, uint32_t mask_slot,
          uint32_t workspace_slot)
      : c(config),
        groups(config.batch * config.heads),
        device_class_(device_class),
        mask_slot_(mask_slot),
        workspace_(workspace_slot) {}

  const AttentionConfig& c;
  const int64_t groups;  // batch x heads

  // The slot of a new region of the workspace.
  uint32_t allocate(int64_t elements) { return workspace_.add_floats(elements); }

  void launch(const std::string& kernel, const std::vector<HostArg>& args) {
    recorder_.call(aot_kernel(kernel, device_class_), kernel, args);
  }

  // Launches a kernel that has a variant with a mask.
  void launch_masked(const std::string& kernel, const std::vector<HostArg>& args) {
    launch(c.mask == Mask::kNone ? kernel : kernel + "_mask", args);
  }

  Plan finish() { return recorder_.finish(workspace_); }

  // ---- layouts of the tiled kernels

  // [bh][row][element]
  Operand rows(uint32_t slot, int64_t count, int64_t depth) const {
    return dense(slot, {depth, count, groups});
  }

  // [bh][row][vector][lane] of whole vectors.
  Operand vectors(uint32_t slot, int64_t count, int64_t depth) const {
    return dense(slot, {kLanes, depth / kLanes, count, groups});
  }

  // The same of the tensor in `slot`, whose rows are brought to `padded` elements if they are not.
  Operand padded_vectors(uint32_t slot, int64_t count, int64_t depth, int64_t padded) {
    if (depth == padded) return vectors(slot, count, depth);
    const int64_t all = groups * count;
    const uint32_t target = allocate(all * padded);
    launch("attention_copy", {dense(slot, {depth, all}), dense(target, {padded, all})});
    return vectors(target, count, padded);
  }

  // Copies rows of `padded` elements in slot `from` into the tensor in `slot`.
  void unpad(uint32_t from, int64_t padded, uint32_t slot, int64_t count, int64_t depth) {
    if (from == slot) return;
    const int64_t all = groups * count;
    launch("attention_copy", {dense(from, {padded, all}), dense(slot, {depth, all})});
  }

  // The rows of a tensor as lanes of packed panels.
  Operand panels(uint32_t slot, int64_t count, int64_t depth) {
    const int64_t panel_count = ceil_div(count, kPanelLanes);
    const uint32_t place = allocate(groups * panel_count * depth * kPanelLanes);
    const Operand result = dense(place, {kLanes, 2, depth, panel_count, groups});
    Operand target = result;
    std::string kernel = "attention_pack";
    if (depth % kLanes == 0) {
      kernel += "_shuffled";
      target.extents = {kLanes, kLanes, 2, depth / kLanes, panel_count, groups};
      target.strides = {1,
                        kPanelLanes,
                        kLanes,
                        kLanes * kPanelLanes,
                        depth * kPanelLanes,
                        depth * kPanelLanes * panel_count};
    }
    launch(kernel, {rows(slot, count, depth), target});
    return result;
  }

  // ---- masks, as [batch][head][query][key] to be added

  // Rows are of whole panels for the tiles.
  void add_mask(std::vector<HostArg>& args, bool has_panels) {
    if (c.mask == Mask::kNone) return;
    const int64_t width = has_panels ? round_up(c.keys, kPanelLanes) : c.keys;
    const int64_t all = c.mask_batch * c.mask_heads * c.mask_queries;
    if (!mask_ && c.mask == Mask::kAdd && width == c.keys) mask_ = mask_slot_;
    if (!mask_) {
      mask_ = allocate(all * width);
      Operand source = dense(mask_slot_, {c.keys, all});
      if (c.mask == Mask::kKeep) source.dtype = DType::kBool;
      launch(c.mask == Mask::kKeep ? "attention_keep" : "attention_copy",
             {source, dense(*mask_, {width, all})});
    }
    const int64_t per_head = c.mask_queries * width, per_batch = c.mask_heads * per_head;
    args.push_back(Operand{*mask_,
                           DType::kF32,
                           {width, c.queries, c.heads, c.batch},
                           {1, c.mask_queries == 1 ? 0 : width, c.mask_heads == 1 ? 0 : per_head,
                            c.mask_batch == 1 ? 0 : per_batch},
                           {}});
  }

  // Enough tiles for a group to be worth its launch, enough groups to share out among cores.
  int32_t tiles_per_group(int64_t row_count) const {
    const int64_t tiles = ceil_div(row_count, kRows);
    return static_cast<int32_t>(std::clamp<int64_t>(tiles * groups / 64, 1, 4));
  }

 private:
  DeviceClass device_class_;
  uint32_t mask_slot_;
  Workspace workspace_;
  std::optional<uint32_t> mask_;  // the slot of the mask made ready
  Recorder recorder_{SourceRules{/*fp_contract=*/false, /*may_alias=*/false}};
};

bool fits_tiles(DeviceClass device_class, const AttentionConfig& c) {
  const int64_t smallest = std::min({c.queries, c.keys, c.depth, c.value_depth});
  return device_class == DeviceClass::kCpu && smallest > 0 &&
         std::max(c.depth, c.value_depth) <= kMaxDepth;
}

struct ForwardSlots {
  uint32_t q = 0, k = 1, v = 2, mask = 3, out, lse, workspace;
  explicit ForwardSlots(const AttentionConfig& c) : out(c.mask == Mask::kNone ? 3 : 4) {
    lse = out + 1;
    workspace = out + 2;
  }
};

struct GradSlots {
  uint32_t dout = 0, q = 1, k = 2, v = 3, lse = 4, delta = 5, mask = 6, dq, dk, dv, workspace;
  explicit GradSlots(const AttentionConfig& c) : dq(c.mask == Mask::kNone ? 6 : 7) {
    dk = dq + 1;
    dv = dq + 2;
    workspace = dq + 3;
  }
};

Plan plan_tiles(const AttentionConfig& c) {
  const ForwardSlots slots(c);
  Builder b(DeviceClass::kCpu, c, slots.mask, slots.workspace);
  const int64_t padded = round_up(c.value_depth, kLanes);
  const int64_t row_count = b.groups * c.queries;
  const uint32_t out = padded == c.value_depth ? slots.out : b.allocate(row_count * padded);
  const uint32_t lse_lanes = b.allocate(row_count * kLanes);
  std::vector<HostArg> args{b.rows(slots.q, c.queries, c.depth), b.panels(slots.k, c.keys, c.depth),
                            b.padded_vectors(slots.v, c.keys, c.value_depth, padded)};
  args.insert(args.end(), {static_cast<int32_t>(c.keys), diagonal_of(c), c.scale,
                           b.tiles_per_group(c.queries)});
  b.add_mask(args, true);
  args.push_back(b.vectors(out, c.queries, padded));
  // Whole vectors are stored, of which one lane is kept.
  Operand lse = b.vectors(lse_lanes, c.queries, padded);
  lse.strides = {1, 0, kLanes, kLanes * c.queries};
  args.push_back(lse);
  b.launch_masked("attention_tiles", args);
  Operand first_lane = dense(lse_lanes, {1, row_count});
  first_lane.strides = {1, kLanes};
  b.launch("attention_copy", {first_lane, dense(slots.lse, {1, row_count})});
  b.unpad(out, padded, slots.out, c.queries, c.value_depth);
  return b.finish();
}

Plan plan_grad_tiles(const AttentionConfig& c) {
  const GradSlots slots(c);
  Builder b(DeviceClass::kCpu, c, slots.mask, slots.workspace);
  // dk and dv come from one kernel, as rows of as many vectors.
  const int64_t padded = round_up(std::max(c.depth, c.value_depth), kLanes);
  const int64_t stats_width = round_up(c.queries, kPanelLanes);
  const Operand stats = dense(b.allocate(b.groups * 2 * stats_width), {stats_width, 2, b.groups});
  b.launch("attention_stats", {dense(slots.lse, {c.queries, b.groups}),
                               dense(slots.delta, {c.queries, b.groups}), stats});
  const auto place_of = [&](uint32_t slot, int64_t count, int64_t depth) {
    return depth == padded ? slot : b.allocate(b.groups * count * padded);
  };
  const uint32_t dq = place_of(slots.dq, c.queries, c.depth);
  const uint32_t dk = place_of(slots.dk, c.keys, c.depth);
  const uint32_t dv = place_of(slots.dv, c.keys, c.value_depth);

  std::vector<HostArg> args{b.rows(slots.q, c.queries, c.depth),
                            b.panels(slots.k, c.keys, c.depth),
                            b.rows(slots.dout, c.queries, c.value_depth),
                            b.panels(slots.v, c.keys, c.value_depth),
                            stats,
                            b.padded_vectors(slots.k, c.keys, c.depth, padded)};
  args.insert(args.end(), {static_cast<int32_t>(c.keys), diagonal_of(c), c.scale,
                           b.tiles_per_group(c.queries)});
  b.add_mask(args, true);
  args.push_back(b.vectors(dq, c.queries, padded));
  b.launch_masked("attention_dq_tiles", args);

  args = {b.rows(slots.k, c.keys, c.depth),
          b.panels(slots.q, c.queries, c.depth),
          b.rows(slots.v, c.keys, c.value_depth),
          b.panels(slots.dout, c.queries, c.value_depth),
          stats,
          b.padded_vectors(slots.q, c.queries, c.depth, padded)};
  args.insert(args.end(), {static_cast<int32_t>(c.queries), diagonal_of(c), c.scale,
                           b.tiles_per_group(c.keys)});
  args.push_back(b.padded_vectors(slots.dout, c.queries, c.value_depth, padded));
  b.add_mask(args, true);
  args.push_back(b.vectors(dk, c.keys, padded));
  args.push_back(b.vectors(dv, c.keys, padded));
  b.launch_masked("attention_dkv_tiles", args);

  b.unpad(dq, padded, slots.dq, c.queries, c.depth);
  b.unpad(dk, padded, slots.dk, c.keys, c.depth);
  b.unpad(dv, padded, slots.dv, c.keys, c.value_depth);
  return b.finish();
}

// The operands of scores in the general kernels.
std::vector<HostArg> score_args(Builder& b, uint32_t q, uint32_t k) {
  const AttentionConfig& c = b.c;
  std::vector<HostArg> args{b.rows(q, c.queries, c.depth), b.rows(k, c.keys, c.depth)};
  b.add_mask(args, false);
  args.insert(args.end(), {diagonal_of(c), c.scale});
  return args;
}

Plan plan_general(const AttentionConfig& c) {
  const ForwardSlots slots(c);
  Builder b(DeviceClass::kGpu, c, slots.mask, slots.workspace);
  const Operand lse = dense(slots.lse, {c.queries, b.groups});
  std::vector<HostArg> args = score_args(b, slots.q, slots.k);
  args.push_back(lse);
  b.launch_masked("attention_lse", args);
  if (c.value_depth == 0) return b.finish();
  args.push_back(b.rows(slots.v, c.keys, c.value_depth));
  args.push_back(b.rows(slots.out, c.queries, c.value_depth));
  b.launch_masked("attention_out", args);
  return b.finish();
}

Plan plan_general_grad(const AttentionConfig& c) {
  const GradSlots slots(c);
  Builder b(DeviceClass::kGpu, c, slots.mask, slots.workspace);
  const Operand q = b.rows(slots.q, c.queries, c.depth), k = b.rows(slots.k, c.keys, c.depth);
  const Operand dout = b.rows(slots.dout, c.queries, c.value_depth);
  std::vector<HostArg> of_p = score_args(b, slots.q, slots.k);
  of_p.push_back(dense(slots.lse, {c.queries, b.groups}));
  std::vector<HostArg> of_ds = of_p;
  of_ds.push_back(b.rows(slots.v, c.keys, c.value_depth));
  of_ds.push_back(dout);
  of_ds.push_back(dense(slots.delta, {c.queries, b.groups}));
  const auto sum = [&](const std::string& kernel, std::vector<HostArg> args, const Operand& x,
                       const Operand& result) {
    for (int64_t extent : result.extents) {
      if (extent == 0) return;
    }
    args.push_back(x);
    args.push_back(result);
    b.launch_masked(kernel, args);
  };
  sum("attention_dq", of_ds, k, b.rows(slots.dq, c.queries, c.depth));
  sum("attention_dk", of_ds, q, b.rows(slots.dk, c.keys, c.depth));
  sum("attention_dv", of_p, dout, b.rows(slots.dv, c.keys, c.value_depth));
  return b.finish();
}

}  // namespace

Plan plan_attention(DeviceClass device_class, const AttentionConfig& config) {
  check(config);
  if (config.batch * config.heads * config.queries == 0) return {};
  return fits_tiles(device_class, config) ? plan_tiles(config) : plan_general(config);
}

Plan plan_attention_grad(DeviceClass device_class, const AttentionConfig& config) {
  check(config);
  if (config.batch * config.heads == 0) return {};
  return fits_tiles(device_class, config) ? plan_grad_tiles(config) : plan_general_grad(config);
}

}  // namespace ballast::kernels
