#include "kernels/matmul/matmul_groups.h"

#include "kernels/plan/halide_runtime.h"
#include "kernels/plan/registers.h"
#include "kernels/plan/streaming.h"

#include <algorithm>

namespace ballast::kernels {
namespace {

constexpr double kGroupNs = 50;              // what a group takes beside its tiles and panels
constexpr int64_t kNearFloats = 256 * 1024;  // of a B that stays in the second cache

// Rows of tiles in a product, strips of panels of them, and products that groups share out.
struct Share {
  int64_t row_tiles, strips, products;
  double last;  // what a row's last strip takes, in others
  double row() const { return strips - 1 + last; }
};

// `last_panel`: what it takes, in others.
Share in_strips(int64_t row_tiles, int64_t panels, int64_t of_strip, int64_t products,
                double last_panel = 1) {
  const int64_t strips = ceil_div(panels, of_strip);
  const double in_last = double(panels - (strips - 1) * of_strip) - 1 + last_panel;
  return {row_tiles, strips, products, in_last / double(of_strip)};
}

// What two cores take that share out groups of so many `tiles`; a product's last may have fewer.
class SharedGroups {
 public:
  SharedGroups(const Share& share, int64_t tiles, double tile_ns, double group_ns)
      : share_(share),
        tiles_(tiles),
        tile_ns_(tile_ns),
        group_ns_(group_ns),
        of_product_(ceil_div(share.row_tiles, tiles) * share.strips),
        count_(of_product_ * share.products) {}

  // Of launches that go together (device/batch.h): each core takes the next group from its end.
  double awake_ns() const {
    int64_t taken = 0;
    for (int64_t end = count_; taken + 1 < end;) {
      const int64_t middle = taken + (end - taken) / 2;
      (before_ns(middle) <= before_ns(count_) / 2 ? taken : end) = middle;
    }
    const double first = before_ns(taken), second = before_ns(count_) - before_ns(taken + 1),
                 last = before_ns(taken + 1) - first;
    return std::max(std::min(first, second) + last, std::max(first, second));
  }

  // A launch by itself: half of the groups that are left go to the core that asks, and the second
  // begins late, as it has to be woken.
  double asleep_ns() const {
    constexpr double kLateNs = 14000;
    double free_at[] = {0, kLateNs}, done = 0;
    for (int64_t first = 0; first < count_;) {
      const int64_t end = first + ceil_div(count_ - first, 2);
      double& core = free_at[free_at[1] < free_at[0]];
      core += before_ns(end) - before_ns(first);
      done = std::max(done, core);
      first = end;
    }
    return done;
  }

  double mean_ns() const { return (awake_ns() + asleep_ns()) / 2; }

 private:
  double before_ns(int64_t number) const {
    const int64_t products = number / of_product_, own = number % of_product_;
    const int64_t rows = own / share_.strips * tiles_,
                  last = std::min(tiles_, share_.row_tiles - rows);
    const double whole = (products * share_.row_tiles + rows) * share_.row();
    return number * group_ns_ + (whole + own % share_.strips * last) * tile_ns_;
  }

  const Share share_;
  const int64_t tiles_;
  const double tile_ns_, group_ns_;
  const int64_t of_product_, count_;
};

// Whether panels come from far in pieces that nothing but the loop asks for: measured on an Emerald
// Rapids, for rows a multiple of 1 KiB apart.
bool is_scattered(const MatmulProblem& p, const MatmulChoice& c) {
  constexpr int64_t kPowerOfTwo = 256;
  return has_wide_units() && c.pack == MatmulPack::kNone && p.lanes(c).k_stride % kPowerOfTwo == 0;
}

// How many panels a group has at most. Of a B that lies in place and comes from afar, tiles ask for
// the next panel; on an Emerald Rapids this gains nothing for 3.2 MB, and something for 3.6.
int64_t most_panels(const MatmulProblem& p, const MatmulChoice& c) {
  constexpr int64_t kFarFloats = 800 * 1024;
  const int64_t elements = p.lanes(c).extent * p.k * p.matrices(p.lanes(c));
  const bool is_far = has_wide_units() && c.takes_strips() && elements > kFarFloats;
  return is_far ? kMatmulStripPanels : 1;
}

}  // namespace

Grouping group_tiles(const MatmulProblem& p, MatmulChoice c, double tile) {
  constexpr int64_t kCachedFloats = 512 * 1024, kMostGroups = 32, kFewTiles = 22;
  // A panel is read once per group, from afar where others pass meanwhile.
  constexpr double kPanelNs = 0.01, kFarPanelNs = 0.07, kPackedPanelNs = 0.1, kCopiedPanelNs = 0.2,
                   kScatteredPanelNs = 0.6;
  constexpr double kNarrow = 1.2;   // what a narrow tile takes, in vectors of another
  constexpr double kAsking = 0.95;  // of the time without, at least
  const int64_t row_tiles = ceil_div(p.rows(c).extent, c.tile->rows),
                panels = ceil_div(p.lanes(c).extent, c.tile->lanes());
  const auto inner = static_cast<double>(p.batch[1] * p.batch[2]);
  tile *= inner;
  // A group's rows of A stay in the second cache.
  const int64_t most = std::max<int64_t>(kCachedFloats / (c.tile->rows * p.k), 1);
  const bool is_far = p.lanes(c).extent * p.k > kNearFloats;
  const double far = is_scattered(p, c) && row_tiles <= kFewTiles ? kScatteredPanelNs : kFarPanelNs;
  const double panel = !packs_in_groups(p, c)           ? (is_far ? far : kPanelNs)
                       : c.pack == MatmulPack::kColumns ? kPackedPanelNs
                                                        : kCopiedPanelNs;
  const double panel_ns = c.tile->lanes() * p.k * panel * inner;
  if (writes_runs(p, c)) {
    const int64_t of_strip = kPageElements / c.tile->lanes();
    const SharedGroups groups(in_strips(row_tiles, panels, of_strip, p.batch[0]), 1,
                              2 * tile * of_strip, kGroupNs);
    return {1, of_strip, groups.mean_ns()};
  }
  const int64_t most_of_strip = most_panels(p, c);
  Grouping best;
  const int64_t fewest = ceil_div(row_tiles, most);
  for (int64_t i = fewest; i <= std::min(row_tiles, fewest + kMostGroups); ++i) {
    const int64_t tiles = ceil_div(row_tiles, i);
    if (tiles == best.tiles) continue;
    c.tiles_per_group = tiles;
    const double last = narrow_tiles_per_group(p, c) > 0 ? kNarrow / c.tile->vectors : 1;
    for (int64_t of_strip = 1; of_strip <= std::min(panels, most_of_strip); ++of_strip) {
      const Share share = in_strips(row_tiles, panels, of_strip, p.batch[0], last);
      const SharedGroups groups(share, tiles, 2 * tile * of_strip, kGroupNs + panel_ns * of_strip);
      const double ns = groups.mean_ns() * (of_strip > 1 ? kAsking : 1);
      if (best.tiles == 0 || ns < best.nanoseconds) best = {tiles, of_strip, ns};
    }
  }
  return best;
}

Grouping group_chunks(const MatmulProblem& p, const MatmulChoice& c, double tile) {
  const MatmulChunks most = c.tile->chunks();
  // An element of B, all once; one row of A takes no longer than that.
  const bool is_far = p.lanes(c).extent * p.k > kNearFloats;
  const double read = c.tile->rows == 1        ? 0
                      : most.in_runs && is_far ? 0.07
                      : most.in_runs           ? 0.12
                      : has_wide_units()       ? 0.25
                                               : 0.1;
  const auto inner = static_cast<double>(p.batch[1] * p.batch[2]);
  const int64_t row_tiles = ceil_div(p.rows(c).extent, c.tile->rows),
                panels = ceil_div(p.lanes(c).extent, c.tile->lanes());
  const int64_t tiles = ceil_div(row_tiles, ceil_div(row_tiles, most.tiles));
  double least = 0;
  Grouping best;
  for (int64_t of_strip = 1; of_strip <= std::min(panels, most.panels); ++of_strip) {
    const double group = kGroupNs + c.tile->lanes() * of_strip * p.k * read * inner;
    const SharedGroups groups(in_strips(row_tiles, panels, of_strip, p.batch[0]), tiles,
                              2 * tile * of_strip * inner, group);
    // The longer its runs the faster is B: 1x1024 by 1024x4096 took 0.54 ms panel by panel, 0.30 by
    // eight and 0.22 by sixteen (Zen 3).
    const double ns = groups.mean_ns(),
                 by_runs = most.in_runs && is_far ? ns * (1 + 4.0 / (2 + of_strip)) : ns;
    if (best.tiles > 0 && by_runs >= least) continue;
    best = {tiles, of_strip, ns};
    least = by_runs;
  }
  return best;
}

}  // namespace ballast::kernels
