// How a product is computed: which operand's lanes become vectors, in which tiles, and whether they
// are packed first. Private to this folder; plain values.
#pragma once

#include "kernels/matmul/matmul.h"
#include "kernels/recipe/lanes.h"

#include <array>
#include <string>
#include <vector>

namespace ballast::kernels {

struct Operand;  // halide_runtime.h

constexpr int64_t kMatmulLanes = kLanes;
constexpr size_t kMatmulBatch = 3;         // dimensions
constexpr int64_t kMatmulNarrowRows = 12;  // of the tile for a product's last lanes
// The most steps of k in a kernel that packs its panels itself; the most, and the fewest, where it
// copies them: rows of fewer do as they are.
constexpr int64_t kMatmulPackedSteps = 256, kMatmulCopiedSteps = 4096, kMatmulLeastCopied = 48;
// Where k passes in chunks: the steps of one, and the most tiles of rows and panels of a group. One
// group has all rows `in_runs`: it reads long runs of B's rows, which CPUs fetch of themselves.
struct MatmulChunks {
  int64_t steps, tiles, panels;
  bool in_runs;
};
// Of a tile of so many rows, in vectors of so many lanes.
constexpr MatmulChunks matmul_chunks(int64_t rows, int64_t vector_lanes) {
  if (rows == 1) return {8, 1, 32, true};
  return vector_lanes < kMatmulLanes ? MatmulChunks{16, 2, 48, true}
                                     : MatmulChunks{64, 22, 8, false};
}
constexpr int64_t kMatmulStripPanels = 8;  // the most of a group that takes all of k for each

// One operand: `extent` rows of A (or columns of B), each a vector over k. Batch dimensions are
// innermost first, here and below.
struct MatmulSide {
  uint32_t slot = 0;
  int64_t extent = 0;
  int64_t stride = 0;    // between neighbours
  int64_t k_stride = 0;  // along k
  std::array<int64_t, kMatmulBatch> batch{};
};

// How a tile is stored: as vectors along the lanes or along the rows, of outputs that are dense
// there and no narrower than a tile; as vectors of whole rows that fill no tile and follow each
// other; or element by element. A block of a GPU (matmul_blocks.h) is stored item by item.
enum class MatmulStore { kLanes, kRows, kShortRows, kElements, kItems };

// Kernels of a tile beside the one with an epilogue: without; and of these, one that reads A
// transposed, one that packs its panels of B itself, and one that copies them.
enum MatmulVariant : unsigned {
  kMatmulPlain = 1,
  kMatmulColumns = 2,
  kMatmulPacking = 4,
  kMatmulCopying = 8,
  kMatmulChunks = 16
};

// As wide as a tile: `vectors` of `lanes` elements each.
struct MatmulPanel {
  int64_t vectors, lanes = kMatmulLanes;
  int64_t width() const { return vectors * lanes; }
};

struct MatmulTile {
  const char* name;
  int64_t rows, vectors;
  MatmulStore store;
  unsigned variants;                    // of MatmulVariant
  double cost;                          // of a multiply-add whose sum is in a register, relative
  int64_t held_rows = rows;             // whose sums are in registers at a time
  int64_t vector_lanes = kMatmulLanes;  // fewer: for registers of so many
  MatmulPanel panel() const { return {vectors, vector_lanes}; }
  int64_t lanes() const { return panel().width(); }
  // Vectors of 16 whose sums are in registers at a time.
  int64_t held_vectors() const { return held_rows * lanes() / kMatmulLanes; }
  bool has_whole_lines() const { return lanes() % kMatmulLanes == 0; }
  bool is_for_narrow_registers() const { return vector_lanes < kMatmulLanes; }
  bool is_block() const { return store == MatmulStore::kItems; }
  // Not blocks, and not vectors and dot products below.
  bool has_panels() const { return rows * vectors > 1 && !is_block(); }
  bool has(MatmulVariant variant) const { return (variants & variant) != 0; }
  MatmulChunks chunks() const { return matmul_chunks(rows, vector_lanes); }
};

enum class MatmulPack { kNone, kRows, kColumns, kElements };

// The kernel for a matrix times a vector, the matrix contiguous along k.
extern const MatmulTile kMatmulVector;
// Many products of narrow results, by vectors of so many lanes of the other side.
extern const MatmulTile kMatmulSmall8, kMatmulSmall4;
// Where both operands are contiguous along k, of a vector and a matrix, and along many steps of few
// rows and a matrix, which `dot_4` does one after the other. They add in another order than all
// others, so where they serve they are the only choice. A line has a vector of steps and elements
// at least.
extern const MatmulTile kMatmulLine, kMatmulLine8;
extern const MatmulTile kMatmulDot, kMatmulDots, kMatmulDot4;

struct MatmulChoice {
  bool swapped = false;              // compute C^T = B^T A^T: the lanes are A's rows
  const MatmulTile* tile = nullptr;  // nullptr: the general kernel
  MatmulPack pack = MatmulPack::kNone;
  bool packs_rows = false;       // the other operand is not contiguous along k, and made so
  int64_t tiles_per_group = 0;   // rows of tiles that a work-group computes, of each panel
  int64_t panels_per_group = 1;  // more where it takes strips of them; products, of small ones
  double nanoseconds = 0;        // as estimated
  // Where panels are read in place, by a kernel of matmul_tiles.
  bool takes_strips() const {
    return pack == MatmulPack::kNone &&
           (tile->store == MatmulStore::kLanes || tile->store == MatmulStore::kElements);
  }
};

// Unlike any other choice for the same problem.
std::string to_string(const MatmulChoice& choice);

// A config as the kernels see it.
struct MatmulProblem {
  DType dtype = DType::kF32;
  bool has_scale = false;
  int64_t k = 0;
  MatmulSide a, b;
  MatmulStrides c;
  std::array<int64_t, kMatmulBatch> batch{1, 1, 1};  // extents
  std::array<int64_t, kMatmulBatch> c_batch{};       // strides

  int64_t products() const { return batch[0] * batch[1] * batch[2]; }
  const MatmulSide& rows(const MatmulChoice& choice) const { return choice.swapped ? b : a; }
  const MatmulSide& lanes(const MatmulChoice& choice) const { return choice.swapped ? a : b; }
  // How many different matrices a side consists of.
  int64_t matrices(const MatmulSide& side) const;
};

bool has_epilogue(const MatmulConfig& config);

// Which slots hold a plan's operands.
struct MatmulSlots {
  uint32_t a = 0, b = 1, scale = 0, bias = 0, extra = 0, of_chain = 0, output = 0;
  // of_chain: the first of the chain's inputs behind the product, if there is a chain.
  explicit MatmulSlots(const MatmulConfig& config, const FusedPointwise* chain = nullptr);
};

// Throws kUnimplemented where the batch does not merge into three dimensions.
MatmulProblem make_matmul_problem(const MatmulConfig& config, const MatmulSlots& slots);

// Everything that could compute the problem, with estimates. All give the same bits. The epilogue
// does not enter but for a scale, which few kernels take: fused and unfused products make the same
// choice.
std::vector<MatmulChoice> matmul_choices(DeviceClass device_class, const MatmulProblem& problem);

// Numbers of those worth measuring: first the one that is estimated to take least, then the others
// that take less than three times as long. `choices` are not empty.
std::vector<size_t> promising_choices(const std::vector<MatmulChoice>& choices);

// Whether C, of some bytes at least, is so large that it is better written past the caches, where
// tiles are whole lines.
bool has_streamed_size(const MatmulProblem& problem, const MatmulChoice& choice,
                       int64_t least_bytes = 0);

// How many bytes of C stay in the last cache all the same where its rows are pages apart: pieces of
// such rows are no stream that is asked for ahead, so stores wait for that cache, with AVX-512
// most. On a Zen 4 (32 MB of cache) 256x64 by 64x3136, 8 of them (25.7 MB), took 5.6 ms, past
// it 4.2, of 16.8 MB 2048x64 by 64x2048 3.5 and 2.8, of 19.3 MB 96x16 by 16x12544, 4 of them, 1.7
// and 1.0; of 14.4 MB they are better kept. On a Zen 3 2048x64 by 64x2048 is too: past the
// cache 4.1 ms, 3.3.
int64_t most_kept_in_pieces();

// Whether a group has one row of tiles, and of each of its rows 4 KiB: of few steps, a result that
// passes the caches takes most of the time, and nothing is as fast as writing it in long runs.
// 96x16 by 16x12544, 8 of them, took 4.3 ms panel by panel and takes 3.2 (Zen 3; of 64 steps 4.6
// and 7.0, as B comes again for each row of tiles).
bool writes_runs(const MatmulProblem& problem, const MatmulChoice& choice);

// Whether, with no epilogue but a bias, each work-group packs the panel of B that it reads: one
// contiguous along few steps of k, which is little beside the tiles of a group.
bool packs_in_groups(const MatmulProblem& problem, const MatmulChoice& choice);

// Whether the tile has a plain kernel that the rows fill, and whether that adds a bias along them.
bool has_plain_kernel(const MatmulProblem& problem, const MatmulChoice& choice);
bool has_plain_rows(const MatmulProblem& problem, const MatmulChoice& choice);

// Whether the rows of a tile lie a multiple of 4 KiB apart and are so many lines of one set of the
// first cache, of which a Zen 3's has eight.
bool shares_cache_sets(const MatmulProblem& problem, const MatmulChoice& choice);

// Lanes after the last whole panel that fill one vector at most take tiles of 12 rows of one
// vector, in the same launch, where there is no epilogue: how many of these a group computes, or 0.
int64_t narrow_tiles_per_group(const MatmulProblem& problem, const MatmulChoice& choice);

// Whether vectors of 4 along an operand's dense dimension, one of its first two, begin at multiples
// of 4 in memory and fill it.
bool lies_in_fours(const Operand& operand);

// Whether the choice's kernel can be compiled at run time with a chain behind it.
bool can_fuse(const MatmulChoice& choice);

// The plan that follows a choice; what plan_matmul and plan_fused_matmul do with theirs.
Plan plan_matmul_as(DeviceClass device_class, const MatmulConfig& config,
                    const MatmulChoice& choice, const FusedPointwise* chain = nullptr);

}  // namespace ballast::kernels
