// Chooses between the tiled kernels of CPUs (attention_tiles, attention_grad_tiles), strips on GPUs
// and the general kernels, and lays out the workspace.
#include "kernels/attention/attention_limits.h"
#include "kernels/attention/attention_operands.h"
#include "kernels/attention/attention_strips.h"
#include "kernels/kernels.h"
#include "kernels/plan/halide_runtime.h"
#include "kernels/plan/registers.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace ballast::kernels {
namespace {

using namespace attention;
using device::Code;
using device::fail;
using Mask = AttentionConfig::Mask;

constexpr int64_t kGroups = 8;        // work-groups wanted of attention_grad_tiles
constexpr int64_t kGroupVectors = 8;  // of queries, where work-groups add up parts of dq

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
    recorder_.call(kernel, device_class_, args);
  }

  // Launches a kernel that has a variant with a mask.
  void launch_masked(const std::string& kernel, const std::vector<HostArg>& args) {
    launch(c.mask == Mask::kNone ? kernel : kernel + "_mask", args);
  }

  // See the recorder.
  void join_beside() { recorder_.join_beside(); }
  size_t launch_count() const { return recorder_.launch_count(); }
  void join_after(size_t count) { recorder_.join_after(count); }

  Plan finish() { return recorder_.finish(workspace_); }

  // ---- layouts of the tiled kernels

  // [bh][row][element]
  Operand rows(uint32_t slot, int64_t count, int64_t depth) const {
    return dense(slot, {depth, count, groups});
  }

  // [bh][row][chunk][element]
  Operand chunks(uint32_t slot, int64_t count, int64_t depth) const {
    return dense(slot, {kStep, depth / kStep, count, groups});
  }

  // [bh][row][vector][lane] of whole vectors.
  Operand vectors(uint32_t slot, int64_t count, int64_t depth, int64_t lanes = kLanes) const {
    return dense(slot, {lanes, depth / lanes, count, groups});
  }

  // The tensor in `slot`, its rows brought to `padded` elements if they are not.
  uint32_t padded(uint32_t slot, int64_t count, int64_t depth, int64_t padded) {
    if (depth == padded) return slot;
    const int64_t all = groups * count;
    const uint32_t target = allocate(all * padded);
    launch("attention_copy", {dense(slot, {depth, all}), dense(target, {padded, all})});
    return target;
  }

  // Where a kernel writes rows of `padded` elements: the tensor in `slot`, or what unpad() reads.
  uint32_t padded_place(uint32_t slot, int64_t count, int64_t depth, int64_t padded) {
    return depth == padded ? slot : allocate(groups * count * padded);
  }

  // Copies rows of `padded` elements in slot `from` into the tensor in `slot`.
  void unpad(uint32_t from, int64_t padded, uint32_t slot, int64_t count, int64_t depth) {
    if (from == slot) return;
    const int64_t all = groups * count;
    launch("attention_copy", {dense(from, {padded, all}), dense(slot, {depth, all})});
  }

  // ---- masks, in the form that is added

  // As [batch][head][query][key].
  void add_mask(std::vector<HostArg>& args) {
    if (c.mask == Mask::kNone) return;
    if (!mask_ && c.mask == Mask::kAdd) mask_ = mask_slot_;
    if (!mask_) {
      mask_ = allocate(mask_elements(c));
      launch("attention_keep", keep_arguments(mask_slot_, *mask_, c));
    }
    args.push_back(mask_operand(*mask_, c));
  }

  // As [batch][head][tile][key][vector][lane], lanes being queries.
  void add_tile_mask(const Tile& tile, std::vector<HostArg>& args) {
    if (c.mask == Mask::kNone) return;
    const int64_t all = c.mask_batch * c.mask_heads, queries = tile.queries();
    const int64_t tiles = ceil_div(c.mask_queries, queries), per_tile = c.keys * queries,
                  per_head = per_tile * tiles;
    const uint32_t target = allocate(all * per_head);
    Operand source = dense(mask_slot_, {c.keys, c.mask_queries, all});
    if (c.mask == Mask::kKeep) source.dtype = DType::kBool;
    launch(c.mask == Mask::kKeep ? "attention_turn_keep" : "attention_turn_add",
           {source, dense(target, {queries, c.keys, tiles, all})});
    args.push_back(
        Operand{target,
                DType::kF32,
                {tile.lanes, tile.vectors, c.keys, ceil_div(c.queries, queries), c.heads, c.batch},
                {1, tile.lanes, queries, tiles == 1 ? 0 : per_tile,
                 c.mask_heads == 1 ? 0 : per_head, c.mask_batch == 1 ? 0 : per_head * c.mask_heads},
                {}});
  }

 private:
  DeviceClass device_class_;
  uint32_t mask_slot_;
  Workspace workspace_;
  std::optional<uint32_t> mask_;  // the slot of the mask made ready
  Recorder recorder_{kDirectAccess};
};

bool fits_tiles(DeviceClass device_class, const AttentionConfig& c) {
  const int64_t smallest = std::min({c.queries, c.keys, c.depth, c.value_depth});
  return device_class == DeviceClass::kCpu && smallest > 0 &&
         std::max(c.depth, c.value_depth) <= kMaxVectors * kLanes;
}

bool takes_strips(DeviceClass device_class, const AttentionConfig& c) {
  return device_class == DeviceClass::kGpu && suits_strips(c);
}

// On CPUs: of a single query, which would leave all lanes of a tile but one empty. Its scores are
// as many as its keys.
bool is_strip(DeviceClass device_class, const AttentionConfig& c) {
  return device_class == DeviceClass::kCpu && c.queries == 1 && !c.causal && c.keys >= kLanes &&
         suits_strips(c);
}

// Queries in tiles; the others are one of a single vector.
int64_t in_tiles_of(const AttentionConfig& c, const Tile& tile) {
  const int64_t left = c.queries % tile.queries();
  return c.queries - (left > tile.lanes ? 0 : left);
}

// Of this CPU, and its kernel that is a `name`.
Tile tile_of_cpu() { return tile_of(!has_wide_registers()); }
std::string kernel_of_cpu(const std::string& name) {
  return has_wide_registers() ? name : "narrow_" + name;
}

Plan plan_tiles(const AttentionConfig& c) {
  const ForwardSlots slots(c);
  Builder b(DeviceClass::kCpu, c, slots.mask, slots.workspace);
  const int64_t depth = round_up(c.depth, kLanes), value_depth = round_up(c.value_depth, kLanes);
  const uint32_t out = b.padded_place(slots.out, c.queries, c.value_depth, value_depth);
  const Tile tile = tile_of_cpu();
  std::vector<HostArg> args{
      b.vectors(b.padded(slots.q, c.queries, c.depth, depth), c.queries, depth, tile.lanes),
      b.rows(b.padded(slots.k, c.keys, c.depth, depth), c.keys, depth),
      b.chunks(b.padded(slots.v, c.keys, c.value_depth, value_depth), c.keys, value_depth),
      int32_t{0},
      diagonal_of(c),
      c.scale};
  constexpr size_t kFirst = 3;
  b.add_tile_mask(tile, args);
  const int64_t in_tiles = in_tiles_of(c, tile);
  const auto launch = [&](const std::string& kernel, int64_t first, int64_t count) {
    if (count == 0) return;
    std::vector<HostArg> own = args;
    own[kFirst] = checked_int32(first);
    own.push_back(Operand{out,
                          DType::kF32,
                          {tile.lanes, value_depth / tile.lanes, count, b.groups, 1},
                          {1, tile.lanes, value_depth, c.queries * value_depth, 1},
                          {}});
    own.push_back(Operand{slots.lse, DType::kF32, {count, b.groups, 1}, {1, c.queries, 1}, {}});
    b.launch_masked(kernel, own);
  };
  launch("attention_" + kernel_of_cpu("tiles"), 0, in_tiles);
  launch("attention_" + kernel_of_cpu("single_tiles"), in_tiles, c.queries - in_tiles);
  if (in_tiles > 0 && in_tiles < c.queries) b.join_beside();
  b.unpad(out, value_depth, slots.out, c.queries, c.value_depth);
  return b.finish();
}

// The sums of attention_grad_tiles, per head and part of its keys: rows of `row` elements of dk, a
// chunk of elements after the other, the same of dv, then rows of a tile's queries, dq'.
struct GradSums {
  Tile tile = tile_of_cpu();
  int64_t row = kRowVectors * tile.lanes;
  int64_t depth, value_depth;  // in whole vectors
  int64_t part_keys, parts;    // a work-group's share of the keys
  int64_t key_rows;            // of dk, and of dv
  int64_t elements;
  uint32_t slot;

  GradSums(const AttentionConfig& c, Builder& b)
      : depth(round_up(c.depth, kLanes)), value_depth(round_up(c.value_depth, kLanes)) {
    const int64_t blocks = ceil_div(c.keys, tile.key_block);
    part_keys = ceil_div(blocks, std::min(blocks, ceil_div(kGroups, b.groups))) * tile.key_block;
    parts = ceil_div(c.keys, part_keys);
    key_rows = ceil_div(std::max(depth, value_depth), row) * part_keys;
    elements = 2 * key_rows * row + round_up(c.queries, tile.queries()) * depth;
    slot = b.allocate(b.groups * parts * elements);
  }

  // Rows of so many vectors.
  Operand operand(const Builder& b, int64_t lanes, int64_t vectors) const {
    Operand sums = dense(slot, {lanes, vectors, elements / (lanes * vectors), parts, b.groups});
    sums.strides[3] = elements;
    sums.strides[4] = parts * elements;
    return sums;
  }

  // Writes dk or dv, rows from `first` on, to rows of whole vectors in slot `target`.
  void write_rows(Builder& b, int64_t first, float factor, uint32_t target, int64_t padded) const {
    const Operand out{target,
                      DType::kF32,
                      {kLanes, padded / kLanes, part_keys, parts, b.groups},
                      {1, kLanes, padded, part_keys * padded, b.c.keys * padded},
                      {}};
    b.launch("attention_grad_" + kernel_of_cpu("rows"),
             {operand(b, kLanes, row / kLanes), checked_int32(first), checked_int32(part_keys),
              checked_int32(b.c.keys), factor, out});
  }

  // Writes dq to rows of whole vectors in slot `target`: of a head by one work-group where one made
  // its sums, else by several.
  void write_queries(Builder& b, uint32_t target) const {
    const int64_t vectors = ceil_div(b.c.queries, tile.lanes);
    b.launch(
        "attention_grad_" + kernel_of_cpu("queries"),
        {operand(b, tile.lanes, tile.vectors), checked_int32(2 * key_rows * row / tile.queries()),
         checked_int32(parts == 1 ? vectors : kGroupVectors), b.c.scale,
         b.vectors(target, b.c.queries, depth, tile.lanes)});
  }
};

Plan plan_grad_tiles(const AttentionConfig& c) {
  const GradSlots slots(c);
  Builder b(DeviceClass::kCpu, c, slots.mask, slots.workspace);
  const GradSums sums(c, b);
  const Tile tile = sums.tile;
  const int64_t in_tiles = in_tiles_of(c, tile);
  const int64_t depth = sums.depth, value_depth = sums.value_depth;
  std::vector<HostArg> args{
      b.vectors(b.padded(slots.q, c.queries, c.depth, depth), c.queries, depth, tile.lanes),
      b.vectors(b.padded(slots.dout, c.queries, c.value_depth, value_depth), c.queries, value_depth,
                tile.lanes),
      b.rows(b.padded(slots.k, c.keys, c.depth, depth), c.keys, depth),
      b.rows(b.padded(slots.v, c.keys, c.value_depth, value_depth), c.keys, value_depth),
      dense(slots.lse, {c.queries, b.groups}),
      dense(slots.delta, {c.queries, b.groups}),
      checked_int32(sums.part_keys),
      int32_t{0},
      checked_int32(in_tiles),
      diagonal_of(c),
      c.scale};
  constexpr size_t kFirst = 7, kCount = 8;
  b.add_tile_mask(tile, args);
  args.push_back(sums.operand(b, tile.lanes, tile.sums));
  const uint32_t dk = b.padded_place(slots.dk, c.keys, c.depth, depth);
  const uint32_t dv = b.padded_place(slots.dv, c.keys, c.value_depth, value_depth);
  const uint32_t dq = b.padded_place(slots.dq, c.queries, c.depth, depth);
  const size_t before = b.launch_count();
  b.launch_masked("attention_grad_" + kernel_of_cpu("tiles"), args);
  if (in_tiles < c.queries) {
    args[kFirst] = checked_int32(in_tiles);
    args[kCount] = checked_int32(c.queries);
    b.launch_masked("attention_grad_" + kernel_of_cpu("single_tiles"), args);
  }
  sums.write_rows(b, 0, c.scale, dk, depth);
  sums.write_rows(b, sums.key_rows, 1.0f, dv, value_depth);
  // A work-group's sums, zeros first, are its own until it has written their rows; those of dq are
  // one part of several if it owns a part of a head's keys.
  if (sums.parts == 1) sums.write_queries(b, dq);
  b.join_after(b.launch_count() - before);
  if (sums.parts > 1) sums.write_queries(b, dq);
  b.unpad(dk, depth, slots.dk, c.keys, c.depth);
  b.unpad(dv, value_depth, slots.dv, c.keys, c.value_depth);
  b.unpad(dq, depth, slots.dq, c.queries, c.depth);
  return b.finish();
}

// The operands of scores in the general kernels.
std::vector<HostArg> score_args(Builder& b, uint32_t q, uint32_t k) {
  const AttentionConfig& c = b.c;
  std::vector<HostArg> args{b.rows(q, c.queries, c.depth), b.rows(k, c.keys, c.depth)};
  b.add_mask(args);
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
  if (takes_strips(device_class, config) || is_strip(device_class, config)) {
    return plan_attention_strips(device_class, config);
  }
  // The general kernels are built for GPUs only; CPUs run the same for what tiles have no room for.
  return fits_tiles(device_class, config) ? plan_tiles(config) : plan_general(config);
}

Plan plan_attention_grad(DeviceClass device_class, const AttentionConfig& config) {
  check(config);
  if (config.batch * config.heads == 0) return {};
  if (takes_strips(device_class, config)) return plan_attention_grad_strips(config);
  // As above.
  return fits_tiles(device_class, config) ? plan_grad_tiles(config) : plan_general_grad(config);
}

}  // namespace ballast::kernels
