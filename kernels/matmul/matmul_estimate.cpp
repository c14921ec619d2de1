#include "kernels/matmul/matmul_estimate.h"

#include "kernels/matmul/matmul_groups.h"
#include "kernels/plan/registers.h"
#include "kernels/plan/streaming.h"

#include <algorithm>
#include <numeric>

namespace ballast::kernels {
namespace {

constexpr double kLaunchNs = 2500;
constexpr double kMultiplyAddNs = 1 / 240.0;                 // in a full tile
constexpr double kGeneralMultiplyAddNs = 1 / 25.0;           // gathers its vectors
constexpr double kScalarStoreNs = 1, kTurnedStoreNs = 0.05;  // an element
constexpr double kStreamingNs = 0.02;                        // a multiply-add that waits for memory
constexpr double kTransposingNs = 0.035;                     // one that also transposes its block
// Rows a multiple of 4 KiB apart share their cache sets: a panel read over and over is evicted.
// That of a chunk of k is read again soon, from the second cache.
constexpr double kAliasingPenalty = 1.5, kAliasingChunkPenalty = 1.25;
// Where each tile reads its panel from the last cache, which is far.
constexpr double kEvictedPenalty = 3;
constexpr double kUnalignedPenalty = 1.25;  // every vector of B lies across two lines
// A panel's rows begin or end within a line, which its neighbour's group reads and writes too.
// Nor can C be written past the caches. Where a large B is read in long runs, these count for more.
constexpr double kHalfLinesPenalty = 1.3, kHalfLineStoreNs = 0.015, kUnstreamedStoreNs = 0.1;
constexpr int64_t kLargeFloats = 2 * 1024 * 1024;
// A step of k reads one line of B, and the next is pages away soon.
constexpr double kScatteredPenalty = 1.25;
constexpr int64_t kScatteredPitch = 256;

constexpr double kPackRowsNs = 0.25;

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

// How many rows so many elements apart the second cache of an Emerald Rapids keeps of a panel of
// four lines: 16 lines of each of its 2048 sets, of which the rows begin in some.
int64_t kept_rows(int64_t pitch) {
  constexpr int64_t kSets = 2048, kWays = 16, kLines = 4;
  return kWays * kSets / std::max(kLines, std::gcd(kSets, ceil_div(pitch, kMatmulLanes)));
}

// What the first cache does to tiles of 16 registers of 8 lanes, measured on a Zen 3: rows of A may
// share its sets, and a panel may be more than most of it.
double first_cache_penalty(const MatmulProblem& p, const MatmulChoice& c) {
  constexpr double kAliasingRow = 0.01, kLargePanel = 0.04;
  constexpr int64_t kLargePanelFloats = 5 * 1024;
  if (has_wide_registers()) return 1;
  return 1 + (shares_cache_sets(p, c) ? kAliasingRow * c.tile->rows : 0) +
         (c.tile->lanes() * p.k > kLargePanelFloats ? kLargePanel : 0);
}

// What the places of B's rows in the sets of caches do to panels that are read where they lie.
double aliasing_penalty(const MatmulProblem& p, const MatmulChoice& c) {
  if (c.pack != MatmulPack::kNone) return 1;
  const int64_t pitch = p.lanes(c).k_stride;
  const bool has_chunks = c.tile->has(kMatmulChunks);
  if (has_wide_units() && !has_chunks && p.k > kept_rows(pitch)) return kEvictedPenalty;
  if (p.k < 256 || pitch % kPageElements != 0 || (has_wide_units() && has_chunks)) return 1;
  return has_chunks ? kAliasingChunkPenalty : kAliasingPenalty;
}

double multiply_add_ns(const MatmulProblem& p, const MatmulChoice& c) {
  if (c.tile->rows == 1) return kStreamingNs;
  const int64_t pitch = p.lanes(c).k_stride;
  double ns = kMultiplyAddNs * c.tile->cost * spilling_penalty(c.tile->held_vectors()) *
              first_cache_penalty(p, c);
  ns *= aliasing_penalty(p, c);
  if (c.pack == MatmulPack::kNone && pitch % kMatmulLanes != 0) ns *= kUnalignedPenalty;
  const bool reads_runs = c.tile->has(kMatmulChunks) && c.tile->chunks().in_runs &&
                          p.lanes(c).extent * p.k > kLargeFloats;
  if (c.pack == MatmulPack::kNone && !c.tile->has_whole_lines() && !reads_runs) {
    ns *= kHalfLinesPenalty;
  }
  if (c.pack == MatmulPack::kNone && c.tile->lanes() < 2 * kMatmulLanes &&
      pitch >= kScatteredPitch) {
    ns *= kScatteredPenalty;
  }
  return ns;
}

}  // namespace

double matmul_tile_ns(const MatmulProblem& p, MatmulChoice& c) {
  const MatmulSide &rows = p.rows(c), &lanes = p.lanes(c);
  const auto k = static_cast<double>(p.k);
  const double elements = c.tile->rows * c.tile->lanes();
  const double tile_ns = elements * k * multiply_add_ns(p, c);
  const Grouping grouping =
      c.tile->has(kMatmulChunks) ? group_chunks(p, c, tile_ns) : group_tiles(p, c, tile_ns);
  c.tiles_per_group = grouping.tiles;
  c.panels_per_group = grouping.panels;
  double ns = kLaunchNs + grouping.nanoseconds;
  const double stored = static_cast<double>(rows.extent) * lanes.extent * p.products();
  if (c.tile->store == MatmulStore::kElements) ns += kScalarStoreNs * stored;
  if (c.tile->store == MatmulStore::kRows) ns += kTurnedStoreNs * stored;
  if (!c.tile->has_whole_lines()) {
    ns += (has_streamed_size(p, c) ? kUnstreamedStoreNs : kHalfLineStoreNs) * stored;
  }
  if (c.packs_rows) ns += kLaunchNs + rows.extent * k * kPackRowsNs * p.matrices(rows);
  if (c.pack != MatmulPack::kNone && !packs_in_groups(p, c)) {
    const double padded = ceil_div(lanes.extent, c.tile->lanes()) * c.tile->lanes();
    ns += kLaunchNs + padded * k * pack_ns(c.pack) * p.matrices(lanes);
  }
  return ns;
}

double matmul_vector_ns(const MatmulProblem& p, const MatmulChoice& c) {
  const double lanes = ceil_div(p.lanes(c).extent, kMatmulLanes) * kMatmulLanes;
  return kLaunchNs + lanes * p.k * p.products() * kTransposingNs;
}

double matmul_dots_gain_ns(const MatmulProblem& p, const MatmulChoice& dots) {
  constexpr int64_t kDotRows = 5;  // of the manifest's matmul_dots
  constexpr int64_t kFolding = 128;
  constexpr double kTileCost = 1.1;
  const double packing = dots.packs_rows ? -kLaunchNs : kLaunchNs;
  if (!has_wide_units()) return packing;
  const int64_t few = p.rows(dots).extent, others = p.lanes(dots).extent * p.products();
  const auto steps = double(ceil_div(few, kDotRows) * kDotRows * (p.k + kFolding)),
             in_tiles = kTileCost * double(ceil_div(few, kMatmulLanes) * kMatmulLanes * p.k);
  return double(others) * (in_tiles - steps) * kMultiplyAddNs + packing;
}

double matmul_small_ns(const MatmulProblem& p, MatmulChoice& c) {
  constexpr int64_t kRows = 4, kGroups = 16;
  constexpr double kTileNs = 8, kStepNs = 0.9, kApartStepNs = 1.8, kGroupNs = 4000;  // of a core
  const double tiles = ceil_div(p.rows(c).extent, kRows) *
                       ceil_div(p.lanes(c).extent, c.tile->lanes()) * p.batch[1] * p.batch[2];
  const double step = p.rows(c).k_stride == 1 ? kStepNs : kApartStepNs;
  const double product = tiles * (kTileNs + step * static_cast<double>(p.k)) / 2;
  c.panels_per_group = std::clamp<int64_t>(static_cast<int64_t>(kGroupNs / product), 1,
                                           ceil_div(p.batch[0], kGroups));
  return kLaunchNs + product * static_cast<double>(p.batch[0]);
}

double matmul_general_ns(const MatmulProblem& p, const MatmulChoice& c) {
  constexpr int64_t kRows = 4;
  return kLaunchNs + ceil_div(p.rows(c).extent, kRows) * kRows *
                         ceil_div(p.lanes(c).extent, kMatmulLanes) * kMatmulLanes * double(p.k) *
                         p.products() * kGeneralMultiplyAddNs;
}

}  // namespace ballast::kernels
