#include "kernels/matmul/matmul_choice.h"

#include "kernels/matmul/matmul_estimate.h"
#include "kernels/plan/blocks.h"
#include "kernels/plan/halide_runtime.h"
#include "kernels/plan/registers.h"
#include "kernels/plan/streaming.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace ballast::kernels {

using device::Code;
using device::fail;

namespace {

// Those of one vector or of vectors of 8 are for 16 registers of 8 lanes; where there are 32 of 16,
// so few sums wait for each other.
constexpr MatmulTile kTiles[] = {
    {"6x64", 6, 4, MatmulStore::kLanes, kMatmulPlain | kMatmulColumns, 1},
    {"12x32", 12, 2, MatmulStore::kLanes, kMatmulPlain | kMatmulPacking, 1.1},
    {"8x48", 8, 3, MatmulStore::kLanes, kMatmulPlain | kMatmulColumns | kMatmulPacking, 1.02},
    {"1x64_chunks", 1, 4, MatmulStore::kLanes, kMatmulChunks, 1},
    {"6x16", 6, 1, MatmulStore::kLanes,
     kMatmulPlain | kMatmulColumns | kMatmulPacking | kMatmulCopying, 1.5},
    {"5x16", 5, 2, MatmulStore::kLanes, kMatmulPlain | kMatmulColumns, 1.6, 5, 8},
    {"6x16_chunks", 6, 2, MatmulStore::kLanes, kMatmulChunks, 1.5, 6, 8},
    {"5x16_chunks", 5, 2, MatmulStore::kLanes, kMatmulChunks, 1.5, 5, 8},
    {"4x24", 4, 3, MatmulStore::kLanes,
     kMatmulPlain | kMatmulColumns | kMatmulPacking | kMatmulCopying, 1.47, 4, 8},
    {"4x24_chunks", 4, 3, MatmulStore::kLanes, kMatmulChunks, 1.47, 4, 8},
    {"16x32_turned", 16, 2, MatmulStore::kRows, 0, 1.03, 8},
    {"16x16_turned", 16, 1, MatmulStore::kRows, 0, 1.56, 4},
    {"16x16_short", 16, 1, MatmulStore::kShortRows, 0, 1.1, 8},
    {"16x16_short_narrow", 16, 1, MatmulStore::kShortRows, 0, 1.6, 4},
    {"6x64_chunks", 6, 4, MatmulStore::kLanes, kMatmulChunks, 1},
    {"6x64_chunks_strided", 6, 4, MatmulStore::kElements, kMatmulChunks, 1},
    {"6x64_strided", 6, 4, MatmulStore::kElements, 0, 1},
    {"6x16_strided", 6, 1, MatmulStore::kElements, 0, 1.5}};

// Those of blocks.h, in its order.
constexpr MatmulTile kBlockTiles[] = {{"128x128_block", 128, 8, MatmulStore::kItems, 0, 1},
                                      {"64x64_block", 64, 4, MatmulStore::kItems, 0, 1},
                                      {"32x32_block", 32, 2, MatmulStore::kItems, 0, 1}};

// Drops dimensions of 1, merges neighbours where all three operands allow it; innermost first.
std::vector<MatmulBatch> collapse(const std::vector<MatmulBatch>& batch) {
  std::vector<MatmulBatch> result;
  for (size_t d = batch.size(); d-- > 0;) {
    const MatmulBatch& next = batch[d];
    if (next.extent == 1) continue;
    if (!result.empty()) {
      MatmulBatch& last = result.back();
      if (next.a == last.a * last.extent && next.b == last.b * last.extent &&
          next.c == last.c * last.extent) {
        last.extent *= next.extent;
        continue;
      }
    }
    result.push_back(next);
  }
  return result;
}

// Products that share B and follow each other are one product with more rows.
bool merge_into_rows(MatmulProblem& p, const MatmulBatch& inner) {
  const bool one_row = p.a.extent == 1;
  const bool merges =
      inner.b == 0 &&
      (one_row || (inner.a == p.a.stride * p.a.extent && inner.c == p.c.row * p.a.extent));
  if (!merges) return false;
  if (one_row) {
    p.a.stride = inner.a;
    p.c.row = inner.c;
  }
  p.a.extent *= inner.extent;
  return true;
}

}  // namespace

const MatmulTile kMatmulVector = {"vector", 1, 1, MatmulStore::kElements, 0, 1};
const MatmulTile kMatmulSmall8 = {"small_8", 1, 1, MatmulStore::kElements, 0, 1, 1, 8};
const MatmulTile kMatmulSmall4 = {"small_4", 1, 1, MatmulStore::kElements, 0, 1, 1, 4};
const MatmulTile kMatmulLine = {"line", 1, 1, MatmulStore::kElements, 0, 1};
const MatmulTile kMatmulLine8 = {"line_8", 1, 1, MatmulStore::kElements, 0, 1, 1, 8};
const MatmulTile kMatmulDot = {"dot", 1, 1, MatmulStore::kElements, 0, 1};
const MatmulTile kMatmulDots = {"dots", 1, 1, MatmulStore::kElements, 0, 1};
const MatmulTile kMatmulDot4 = {"dot_4", 1, 1, MatmulStore::kElements, 0, 1};

int64_t MatmulProblem::matrices(const MatmulSide& side) const {
  int64_t count = 1;
  for (size_t d = 0; d < kMatmulBatch; ++d) count *= side.batch[d] == 0 ? 1 : batch[d];
  return count;
}

MatmulProblem make_matmul_problem(const MatmulConfig& config, const MatmulSlots& slots) {
  const int64_t m = config.m, n = config.n, k = config.k;
  const MatmulStrides a =
      config.a_strides.value_or(config.transpose_a ? MatmulStrides{1, m} : MatmulStrides{k, 1});
  const MatmulStrides b =
      config.b_strides.value_or(config.transpose_b ? MatmulStrides{1, k} : MatmulStrides{n, 1});
  MatmulProblem p;
  p.dtype = config.dtype;
  p.has_scale = config.has_scale;
  p.k = k;
  p.a = {slots.a, m, a.row, a.column, {}};
  p.b = {slots.b, n, b.column, b.row, {}};
  p.c = config.c_strides.value_or(MatmulStrides{n, 1});
  std::vector<MatmulBatch> batch = collapse(config.batch);
  while (!batch.empty() && merge_into_rows(p, batch.front())) batch.erase(batch.begin());
  if (batch.size() > kMatmulBatch) {
    fail(Code::kUnimplemented,
         "[matmul] the operands repeat in a pattern of {} batch dimensions, at most {} are "
         "supported: broadcast one operand first",
         batch.size(), kMatmulBatch);
  }
  // The first dimension is shared out among the cores.
  std::stable_sort(batch.begin(), batch.end(),
                   [](const MatmulBatch& x, const MatmulBatch& y) { return x.extent > y.extent; });
  for (size_t d = 0; d < batch.size(); ++d) {
    p.batch[d] = batch[d].extent;
    p.a.batch[d] = batch[d].a;
    p.b.batch[d] = batch[d].b;
    p.c_batch[d] = batch[d].c;
  }
  return p;
}

std::string to_string(const MatmulChoice& c) {
  return fmt::format("{}{} pack {}{}", c.tile == nullptr ? "general" : c.tile->name,
                     c.swapped ? " swapped" : "", static_cast<int>(c.pack),
                     c.packs_rows ? " rows" : "");
}

std::vector<size_t> promising_choices(const std::vector<MatmulChoice>& choices) {
  constexpr double kPromising = 3;
  const auto less = [](const MatmulChoice& x, const MatmulChoice& y) {
    return x.nanoseconds < y.nanoseconds;
  };
  const size_t least = std::min_element(choices.begin(), choices.end(), less) - choices.begin();
  std::vector<size_t> numbers = {least};
  for (size_t i = 0; i < choices.size(); ++i) {
    if (i != least && choices[i].nanoseconds < kPromising * choices[least].nanoseconds) {
      numbers.push_back(i);
    }
  }
  return numbers;
}

bool has_streamed_size(const MatmulProblem& p, const MatmulChoice& c, int64_t least_bytes) {
  return should_stream(DeviceClass::kCpu, p.rows(c).extent * p.products(), p.lanes(c).extent,
                       std::max(kStreamedBytes, least_bytes));
}

int64_t most_kept_in_pieces() { return last_cache_bytes() / 4 * (has_wide_registers() ? 2 : 3); }

bool writes_runs(const MatmulProblem& p, const MatmulChoice& c) {
  constexpr int64_t kFewSteps = 32;
  return !has_wide_units() && c.takes_strips() && c.tile->has_whole_lines() && p.k <= kFewSteps &&
         p.lanes(c).extent >= kPageElements && has_streamed_size(p, c, most_kept_in_pieces());
}

bool lies_in_fours(const Operand& operand) {
  const size_t dense = operand.strides[0] == 1 ? 0 : 1;
  for (size_t d = 0; d < operand.strides.size(); ++d) {
    const int64_t extent = operand.extents[d];
    if (d == dense ? extent % 4 != 0 : extent > 1 && operand.strides[d] % 4 != 0) return false;
  }
  return true;
}

bool packs_in_groups(const MatmulProblem& p, const MatmulChoice& c) {
  const bool has_kernel =
      c.pack == MatmulPack::kColumns
          ? c.tile->has(kMatmulPacking) && p.k % kMatmulLanes == 0 && p.k <= kMatmulPackedSteps
          : c.pack == MatmulPack::kRows && c.tile->has(kMatmulCopying) &&
                p.k >= kMatmulLeastCopied && p.k <= kMatmulCopiedSteps;
  return has_kernel && p.lanes(c).extent >= c.tile->lanes() && p.rows(c).extent >= c.tile->rows;
}

bool has_plain_kernel(const MatmulProblem& p, const MatmulChoice& c) {
  return c.tile != nullptr && c.tile->has(kMatmulPlain) && p.rows(c).extent >= c.tile->rows;
}

bool has_plain_rows(const MatmulProblem& p, const MatmulChoice& c) {
  return has_plain_kernel(p, c) && !(c.pack == MatmulPack::kColumns && packs_in_groups(p, c));
}

bool shares_cache_sets(const MatmulProblem& p, const MatmulChoice& c) {
  constexpr int64_t kManySteps = 256;
  return !c.packs_rows && p.k >= kManySteps && p.rows(c).stride % kPageElements == 0;
}

int64_t narrow_tiles_per_group(const MatmulProblem& p, const MatmulChoice& c) {
  const int64_t last = p.lanes(c).extent % c.tile->lanes(), rows = p.rows(c).extent;
  const bool in_place = c.pack == MatmulPack::kNone || packs_in_groups(p, c);
  if (last == 0 || last > c.tile->vector_lanes || !in_place) return 0;
  if (c.tile->vectors == 1 || !c.tile->has(kMatmulPlain)) return 0;
  if (c.tile->is_for_narrow_registers() && shares_cache_sets(p, c)) return 0;
  if (rows < std::max(kMatmulNarrowRows, c.tile->rows)) return 0;
  // Groups side by side: equally many.
  const int64_t groups = ceil_div(ceil_div(rows, c.tile->rows), c.tiles_per_group);
  const int64_t tiles = ceil_div(rows, kMatmulNarrowRows), narrow = ceil_div(tiles, groups);
  return ceil_div(tiles, narrow) == groups ? narrow : 0;
}

namespace {

// Steps of k that are worth sums in another order, and rows: each takes its share of the time, the
// other tiles as much for one row as for 32.
constexpr int64_t kLeastDot = 256, kMostDots = 20;
// Where these rows are packed first, the most of the other side: of more, tiles take as long.
constexpr int64_t kMostBesidePacked = 512;

// Rows shorter than a vector, which follow each other without gaps.
bool has_short_rows(const MatmulSide& side) {
  return side.stride == 1 && side.k_stride == side.extent && side.extent < kMatmulLanes;
}

bool has_whole_panels(const MatmulSide& side, const MatmulTile& tile) {
  return side.stride == 1 && side.extent >= tile.lanes();
}

bool can_read_directly(const MatmulSide& side, const MatmulTile& tile) {
  return has_whole_panels(side, tile) ||
         (tile.store == MatmulStore::kShortRows && has_short_rows(side));
}

bool can_store(const MatmulProblem& p, const MatmulChoice& c) {
  const int64_t along_rows = c.swapped ? p.c.column : p.c.row;
  const int64_t along_lanes = c.swapped ? p.c.row : p.c.column;
  switch (c.tile->store) {
    case MatmulStore::kLanes:
      return along_lanes == 1 && p.lanes(c).extent >= c.tile->lanes();
    case MatmulStore::kRows:
      return along_rows == 1 && p.rows(c).extent >= c.tile->rows;
    case MatmulStore::kShortRows:
      return along_lanes == 1 && p.lanes(c).extent <= c.tile->lanes() &&
             along_rows == p.lanes(c).extent && p.rows(c).extent >= c.tile->rows;
    case MatmulStore::kElements:
    case MatmulStore::kItems:
      return true;
  }
  return false;
}

// A bias lies along the rows where the product is swapped, else along the lanes.
bool takes_bias(const MatmulTile& tile, bool swapped) {
  if (tile.store == MatmulStore::kLanes) return true;
  return swapped != (tile.store == MatmulStore::kShortRows);
}

bool takes_rows(const MatmulTile& tile, int64_t rows) {
  const MatmulChunks most = tile.chunks();
  return !tile.has(kMatmulChunks) || !most.in_runs || rows <= most.tiles * tile.rows;
}

MatmulPack packing_of(const MatmulSide& side, const MatmulTile& tile) {
  if (has_whole_panels(side, tile)) return MatmulPack::kRows;
  return side.k_stride == 1 ? MatmulPack::kColumns : MatmulPack::kElements;
}

std::vector<MatmulChoice> gpu_choices(const MatmulProblem& p) {
  std::vector<MatmulChoice> choices{{false}};
  if (p.k == 0 || p.dtype != DType::kF32) return choices;
  const auto is_dense = [](const MatmulSide& side) {
    return side.k_stride == 1 || side.stride == 1;
  };
  if (!is_dense(p.a) || !is_dense(p.b)) return choices;
  const BlockedProduct product = {p.a.extent, p.b.extent, p.products(), p.k};
  // Neighbouring items write neighbours of C where it is dense along its rows too.
  const bool swapped = p.c.row == 1 && p.c.column != 1;
  constexpr double kUnsharedCost = 2.5;
  choices[0].nanoseconds = kUnsharedCost * block_ns(product, kBlocks[1]);
  for (size_t i = 0; i < kBlocks.size(); ++i) {
    MatmulChoice c{swapped, &kBlockTiles[i]};
    c.nanoseconds = block_ns(product, kBlocks[i]);
    choices.push_back(c);
  }
  return choices;
}

bool stores_short_rows(const MatmulProblem& p, bool swapped) {
  return std::any_of(std::begin(kTiles), std::end(kTiles), [&](const MatmulTile& tile) {
    return tile.store == MatmulStore::kShortRows && takes_bias(tile, swapped) &&
           can_store(p, {swapped, &tile});
  });
}

// A vector times a matrix.
std::optional<MatmulChoice> line_choice(const MatmulProblem& p) {
  constexpr int64_t kGroupElements = 32768, kGroups = 8;
  MatmulChoice c{p.b.extent < p.a.extent};
  c.tile = has_wide_registers() ? &kMatmulLine : &kMatmulLine8;
  const MatmulSide &vector = p.rows(c), &others = p.lanes(c);
  const int64_t lanes = c.tile->lanes(), panels = ceil_div(others.extent, lanes);
  if (vector.extent != 1 || vector.k_stride != 1 || others.k_stride != 1 || p.k < lanes ||
      others.extent < lanes) {
    return std::nullopt;
  }
  const int64_t fewest = ceil_div(panels * p.products(), kGroups);
  c.panels_per_group =
      std::clamp<int64_t>(kGroupElements / (lanes * p.k), 1, std::min(panels, fewest));
  return c;
}

constexpr double kLeastGainNs = 1;

std::optional<MatmulChoice> small_choice(const MatmulProblem& p, bool swapped) {
  MatmulChoice c{swapped};
  const MatmulSide& lanes = p.lanes(c);
  for (const MatmulTile* tile : {&kMatmulSmall8, &kMatmulSmall4}) {
    const bool fits = lanes.extent >= tile->lanes() && lanes.extent < kMatmulLanes;
    if (!fits || lanes.stride != 1 || p.products() == 1) continue;
    c.tile = tile;
    c.nanoseconds = matmul_small_ns(p, c);
    return c;
  }
  return std::nullopt;
}

// The kernel that adds in its own order, where it serves. Rows that it would have to pack are read
// in tiles where these can, and little is gained: 64x512x10 on an Emerald Rapids 8.6 to 5.0 us.
std::optional<MatmulChoice> dot_choice(const MatmulProblem& p) {
  MatmulChoice c{p.b.extent < p.a.extent};
  const MatmulSide &few = p.rows(c), &others = p.lanes(c);
  if (p.k < kLeastDot || others.k_stride != 1 || few.extent > kMostDots) return std::nullopt;
  c.packs_rows = few.k_stride != 1;
  const bool stores_short = has_wide_registers() && stores_short_rows(p, !c.swapped);
  const bool is_few_beside_packed = others.extent * p.products() <= kMostBesidePacked;
  const bool is_better =
      c.packs_rows ? is_few_beside_packed && !(stores_short && has_short_rows(few)) : !stores_short;
  if (!is_better && matmul_dots_gain_ns(p, c) <= 0) return std::nullopt;
  c.tile = !has_wide_registers() ? &kMatmulDot4 : few.extent == 1 ? &kMatmulDot : &kMatmulDots;
  return c;
}

// Without a scale.
std::vector<MatmulChoice> all_choices(DeviceClass device_class, const MatmulProblem& p) {
  if (device_class == DeviceClass::kGpu) return gpu_choices(p);
  std::vector<MatmulChoice> choices{{false}, {true}};
  for (MatmulChoice& c : choices) c.nanoseconds = matmul_general_ns(p, c);
  if (p.k == 0 || p.dtype != DType::kF32) return choices;
  if (const auto line = line_choice(p)) return {*line};
  if (const auto dot = dot_choice(p)) return {*dot};
  for (bool swapped : {false, true}) {
    MatmulChoice vector{swapped, &kMatmulVector};
    if (p.rows(vector).extent == 1 && p.lanes(vector).k_stride == 1) {
      vector.nanoseconds = matmul_vector_ns(p, vector);
      choices.push_back(vector);
    }
    if (const auto small = small_choice(p, swapped)) {
      // The general kernels gather what it loads, which takes AMD's CPUs far longer than estimated.
      for (size_t i = 0; i < 2; ++i) {
        choices[i].nanoseconds =
            std::max(choices[i].nanoseconds, small->nanoseconds + kLeastGainNs);
      }
      choices.push_back(*small);
    }
    for (const MatmulTile& tile : kTiles) {
      MatmulChoice c{swapped, &tile};
      const MatmulSide& lanes = p.lanes(c);
      if (!takes_bias(tile, swapped)) continue;
      if (tile.is_for_narrow_registers() && has_wide_registers()) continue;
      if (!can_store(p, c)) continue;
      if (!takes_rows(tile, p.rows(c).extent)) continue;
      for (MatmulPack pack : {MatmulPack::kNone, packing_of(lanes, tile)}) {
        c.pack = pack;
        if (pack == MatmulPack::kNone && !can_read_directly(lanes, tile)) continue;
        if (tile.has(kMatmulChunks) && pack != MatmulPack::kNone) continue;
        c.packs_rows = p.rows(c).k_stride != 1;
        c.nanoseconds = matmul_tile_ns(p, c);
        choices.push_back(c);
      }
    }
  }
  return choices;
}

}  // namespace

std::vector<MatmulChoice> matmul_choices(DeviceClass device_class, const MatmulProblem& p) {
  std::vector<MatmulChoice> choices = all_choices(device_class, p);
  if (!p.has_scale) return choices;
  const auto is_other = [&](const MatmulChoice& c) { return !c.swapped || !has_plain_rows(p, c); };
  choices.erase(std::remove_if(choices.begin(), choices.end(), is_other), choices.end());
  return choices;
}

}  // namespace ballast::kernels
