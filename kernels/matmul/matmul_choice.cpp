#include "kernels/matmul/matmul_choice.h"

#include <algorithm>
#include <optional>

namespace ballast::kernels {

using device::Code;
using device::fail;

namespace {

constexpr MatmulTile kTiles[] = {
    {"6x64", 6, 4, MatmulStore::kLanes, kMatmulPlain | kMatmulColumns, 1},
    {"12x32", 12, 2, MatmulStore::kLanes, kMatmulPlain | kMatmulPacking, 1.1},
    {"1x256", 1, 16, MatmulStore::kLanes, 0, 1},
    {"16x32_turned", 16, 2, MatmulStore::kRows, 0, 1.03},
    {"6x64_strided", 6, 4, MatmulStore::kElements, 0, 1}};

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
const MatmulTile kMatmulDot = {"dot", 1, 1, MatmulStore::kElements, 0, 1};
const MatmulTile kMatmulDots = {"dots", 1, 1, MatmulStore::kElements, 0, 1};

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

// ---- estimates. The figures are those of the machine the schedules were measured on; only their
// ratios matter.

namespace {

constexpr double kLaunchNs = 2500;
constexpr double kMultiplyAddNs = 1 / 240.0;                 // in a full tile
constexpr double kGeneralMultiplyAddNs = 1 / 25.0;           // gathers its vectors
constexpr double kScalarStoreNs = 1, kTurnedStoreNs = 0.05;  // an element
constexpr double kStreamingNs = 0.02;                        // a multiply-add that waits for memory
constexpr double kTransposingNs = 0.035;                     // one that also transposes its block
// Rows a multiple of 4 KiB apart share their cache sets: a panel read over and over is evicted.
constexpr double kAliasingPenalty = 1.5;
constexpr double kUnalignedPenalty = 1.25;  // every vector of B lies across two lines

constexpr double kPackRowsNs = 0.25;
// Steps of k that are worth sums in another order, and rows: each takes its share of the time, the
// other tiles as much for one row as for 32.
constexpr int64_t kLeastDot = 256, kMostDots = 20;

double pack_ns(MatmulPack pack) {
  switch (pack) {
    case MatmulPack::kNone:
      return 0;
    case MatmulPack::kRows:
      return 0.13;
    case MatmulPack::kColumns:
      return 0.18;
    case MatmulPack::kElements:
      return 0.35;
  }
  return 0;
}

bool can_read_directly(const MatmulSide& side, const MatmulTile& tile) {
  return side.stride == 1 && side.extent >= tile.lanes();
}

bool can_store(const MatmulProblem& p, const MatmulChoice& c) {
  const int64_t along_rows = c.swapped ? p.c.column : p.c.row;
  const int64_t along_lanes = c.swapped ? p.c.row : p.c.column;
  switch (c.tile->store) {
    case MatmulStore::kLanes:
      return along_lanes == 1 && p.lanes(c).extent >= c.tile->lanes();
    case MatmulStore::kRows:
      return along_rows == 1 && p.rows(c).extent >= c.tile->rows;
    case MatmulStore::kElements:
      return true;
  }
  return false;
}

MatmulPack packing_of(const MatmulSide& side, const MatmulTile& tile) {
  if (can_read_directly(side, tile)) return MatmulPack::kRows;
  return side.k_stride == 1 ? MatmulPack::kColumns : MatmulPack::kElements;
}

double tile_ns(const MatmulProblem& p, const MatmulChoice& c) {
  const MatmulSide &rows = p.rows(c), &lanes = p.lanes(c);
  const auto k = static_cast<double>(p.k);
  const double padded_lanes = ceil_div(lanes.extent, c.tile->lanes()) * c.tile->lanes();
  const double padded_rows = ceil_div(rows.extent, c.tile->rows) * c.tile->rows;
  const double count = p.products();
  double ns = padded_rows * padded_lanes * k * kMultiplyAddNs * c.tile->cost;
  if (c.tile->rows == 1) ns = padded_lanes * k * kStreamingNs;
  if (c.pack == MatmulPack::kNone && k >= 256 && lanes.k_stride % 1024 == 0) ns *= kAliasingPenalty;
  if (c.pack == MatmulPack::kNone && lanes.k_stride % kMatmulLanes != 0) ns *= kUnalignedPenalty;
  if (c.tile->store == MatmulStore::kElements) ns += kScalarStoreNs * rows.extent * lanes.extent;
  if (c.tile->store == MatmulStore::kRows) ns += kTurnedStoreNs * rows.extent * lanes.extent;
  ns = kLaunchNs + ns * count;
  if (c.packs_rows) ns += kLaunchNs + rows.extent * k * kPackRowsNs * p.matrices(rows);
  if (c.pack != MatmulPack::kNone) {
    ns += kLaunchNs + padded_lanes * k * pack_ns(c.pack) * p.matrices(lanes);
  }
  return ns;
}

double vector_ns(const MatmulProblem& p, const MatmulChoice& c) {
  const double lanes = ceil_div(p.lanes(c).extent, kMatmulLanes) * kMatmulLanes;
  return kLaunchNs + lanes * p.k * p.products() * kTransposingNs;
}

double general_ns(const MatmulProblem& p, const MatmulChoice& c) {
  constexpr int64_t kRows = 4;
  return kLaunchNs + ceil_div(p.rows(c).extent, kRows) * kRows *
                         ceil_div(p.lanes(c).extent, kMatmulLanes) * kMatmulLanes * double(p.k) *
                         p.products() * kGeneralMultiplyAddNs;
}

// The kernel that adds in its own order, where it serves.
std::optional<MatmulChoice> dot_choice(const MatmulProblem& p) {
  if (p.k < kLeastDot || p.a.k_stride != 1 || p.b.k_stride != 1) return std::nullopt;
  const bool swapped = p.b.extent < p.a.extent;
  const int64_t few = std::min(p.a.extent, p.b.extent);
  if (few > kMostDots) return std::nullopt;
  return MatmulChoice{swapped, few == 1 ? &kMatmulDot : &kMatmulDots};
}

}  // namespace

std::vector<MatmulChoice> matmul_choices(DeviceClass device_class, const MatmulProblem& p) {
  std::vector<MatmulChoice> choices{{false}};
  if (device_class == DeviceClass::kGpu) return choices;
  choices.push_back({true});
  for (MatmulChoice& c : choices) c.nanoseconds = general_ns(p, c);
  if (p.k == 0) return choices;
  if (const auto dot = dot_choice(p)) return {*dot};
  for (bool swapped : {false, true}) {
    MatmulChoice vector{swapped, &kMatmulVector};
    if (p.rows(vector).extent == 1 && p.lanes(vector).k_stride == 1) {
      vector.nanoseconds = vector_ns(p, vector);
      choices.push_back(vector);
    }
    for (const MatmulTile& tile : kTiles) {
      MatmulChoice c{swapped, &tile};
      const MatmulSide& lanes = p.lanes(c);
      // Kernels that store along the lanes take the bias there, the others along the rows; where
      // there is one row only, a bias is a single number.
      const bool is_vector = p.rows(c).extent == 1, by_lanes = tile.store == MatmulStore::kLanes;
      if (by_lanes == swapped && !(by_lanes && is_vector)) continue;
      if (!can_store(p, c)) continue;
      if (tile.rows == 1 && !is_vector) continue;
      for (MatmulPack pack : {MatmulPack::kNone, packing_of(lanes, tile)}) {
        c.pack = pack;
        if (pack == MatmulPack::kNone && !can_read_directly(lanes, tile)) continue;
        c.packs_rows = p.rows(c).k_stride != 1;
        c.nanoseconds = tile_ns(p, c);
        choices.push_back(c);
      }
    }
  }
  return choices;
}

}  // namespace ballast::kernels
