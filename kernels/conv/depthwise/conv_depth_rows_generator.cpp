// Depthwise 3x3 and 5x5 of stride 1 between zeros one or two wide, on CPUs, where results stay near
// in a fast last cache and rows are at most four vectors: nothing is copied, rows are read where
// they lie.
//
//   conv_depth_rows         y, or dx with flipped weights: of 3x3 the bits of conv_depth
//   conv_depth_weight_rows  dw: sums over pixels in a vector of sums per tap, added at the end
//
// Four rows of results are computed together, all vectors of a row unrolled, the last of a row
// moved inwards: no masks, few addresses, and what is loaded serves up to three rows. A vector one
// pixel to the side is a shuffle of two neighbours, or of one and zeros: a load that crosses lines
// costs two, and more where they come from afar (1.07 times slower, the weight gradient 1.04).
// Asking for the next plane gained nothing, and made the weight gradient 1.2 times slower.
#include "kernels/conv/depthwise/conv_depth.h"
#include "kernels/conv/depthwise/conv_depth_recipe.h"
#include "kernels/pointwise/pointwise_math.h"
#include "kernels/recipe/lane_fold.h"
#include "kernels/recipe/shuffle.h"

#include <optional>
#include <string>
#include <vector>

namespace ballast::kernels {
namespace {

using namespace Halide;

constexpr int kRows = kDepthRows;

template <class Derived>
class RowsGenerator : public Generator<Derived> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "cpu"};
  GeneratorParam<int> window{"window", 3};    // rows and columns of it: 3 or 5
  GeneratorParam<int> vectors{"vectors", 4};  // of a row
  GeneratorParam<int> lanes_of_vector{"lanes", 16};
  // Of squares of just so many rows, whose addresses then are few; towards the weights all rows are
  // a group.
  GeneratorParam<int> side_of_plane{"plane", 0};

 protected:
  int lane_count() const { return lanes_of_vector; }
  int side() const { return window; }
  int reach() const { return side() / 2; }
  bool is_square() const { return side_of_plane > 0; }
  bool is_whole_group() const { return is_square() && Derived::kGroupsAreSquares; }
  int rows() const { return is_whole_group() ? int(side_of_plane) : kRows; }  // of a group
  // Where a register has 8 lanes, nine sums of a row fit, and a load costs less than its shuffles.
  bool has_cheap_loads() const { return lane_count() < 16; }

  // Numbers of pixels. Multiples are arguments, so that each row keeps a pointer of its own through
  // the loop over rows: Halide would make products of their sums again.
  GeneratorInput<int> width{"width"}, two_rows{"two_rows"}, three_rows{"three_rows"},
      four_rows{"four_rows"};
  GeneratorInput<Buffer<float, 3>> in{"in"};  // (a plane's pixels, g, n)
  Var l{"l"}, o{"o"}, g{"g"}, n{"n"};

  Expr plane() {
    return is_square() ? Expr(side_of_plane * int(side_of_plane)) : in.dim(0).extent();
  }
  Expr pixels_of(int count) {
    const Expr given[] = {0, width, two_rows, three_rows, four_rows};
    return is_square() ? Expr(count * side_of_plane) : given[count];
  }

  Expr clamped(const Expr& place) { return unsafe_promise_clamped(place, 0, plane() - 1); }

  // Groups of rows, and where group k begins in its plane; the last one ends with it.
  Expr groups() {
    return is_whole_group() ? Expr(1) : (plane() + pixels_of(kRows) - 1) / pixels_of(kRows);
  }
  Expr first_of(const Expr& k) {
    return is_whole_group() ? Expr(0) : min(k * pixels_of(kRows), plane() - pixels_of(kRows));
  }

  // Where row j from `first` on begins if the plane has it, from the first on.
  Expr row_after(const Expr& first, int j) {
    if (j == 0) return first;
    if (j <= kRows) return first + pixels_of(j);
    return first + pixels_of(kRows) + pixels_of(j - kRows);
  }
  // Where row j from `first` on begins, or the plane's first or last row.
  Expr start_of_row(const Expr& first, int j) {
    if (j < 0) return max(first - pixels_of(-j), 0);
    return j < kRows ? row_after(first, j) : min(row_after(first, j), plane() - pixels_of(1));
  }
  // Whether the plane has it.
  Expr has_row(const Expr& first, int j) {
    if (j < 0) return j == -1 ? first > 0 : first >= pixels_of(-j);
    return j < kRows ? Internal::const_true() : row_after(first, j) < plane();
  }

  // Which rows j may be: those of a group, and so many before or after as tap rows reach.
  struct Rows {
    int from = 0, to = kRows - 1;

    template <class F>
    Expr select_from(const Expr& j, const F& f) const {
      Expr value = f(to);
      for (int row = to - 1; row >= from; --row) value = select(j == row, f(row), value);
      return value;
    }
  };
  Expr row_at(const Expr& first, const Expr& j, Rows those = {}) {
    if (is_whole_group()) return clamp(j, 0, rows() - 1) * rows();
    return those.select_from(j, [&](int row) { return start_of_row(first, row); });
  }
  Expr has_row_at(const Expr& first, const Expr& j, Rows those = {}) {
    if (is_whole_group()) return j >= 0 && j < rows();
    return those.select_from(j, [&](int row) { return has_row(first, row); });
  }

  // Of vector v of a row.
  Expr start_of(const Expr& v) {
    return select(v == vectors - 1, pixels_of(1) - lane_count(), v * lane_count());
  }

  // What tap (kx, ky) sees from vector v of row i of the group that begins at `first`.
  Expr pixels(const Expr& v, const Expr& i, const Expr& first, int kx, const Expr& ky,
              const Expr& image) {
    const int apart = kx - reach();  // columns to the right
    const std::optional<int64_t> known_ky = Internal::as_const_int(ky);
    const int before = known_ky ? reach() - int(*known_ky) : reach(),
              after = known_ky ? -before : reach();
    const Rows those{-before, kRows - 1 + after};
    const Expr j = i + (ky - reach()), row = row_at(first, j, those), x = start_of(v) + l;
    const auto at = [&](const Expr& column) {
      const Expr pixel = in(clamped(row + column), g, image);
      return select(j < 0 || j >= rows(), select(has_row_at(first, j, those), pixel, 0.0f), pixel);
    };
    if (apart == 0) return at(x);
    const int lanes = lane_count();
    const auto shifted = [=](const Expr& a, const Expr& b) {
      return take_lanes(a, b, lanes,
                        [=](int lane) { return lane + apart + (apart < 0 ? lanes : 0); });
    };
    const Expr last = vectors - 1;
    if (apart < 0) {
      const Expr of_others = has_cheap_loads()
                                 ? at(x + apart)
                                 : select(v < last, shifted(at(x - lanes), at(x)), at(x + apart));
      return select(v == 0, shifted(Expr(0.0f), at(x)), of_others);
    }
    const Expr of_others =
        has_cheap_loads() ? at(x + apart)
                          : select(v == last - 1, at(x + apart), shifted(at(x), at(x + lanes)));
    return select(v == last, shifted(at(x), Expr(0.0f)), of_others);
  }
  Expr pixels(const Expr& v, const Expr& i, const Expr& first, const Expr& kx, const Expr& ky,
              const Expr& image) {
    Expr seen = pixels(v, i, first, reach(), ky, image);
    for (int tap = 0; tap < side(); ++tap) {
      if (tap != reach()) seen = select(kx == tap, pixels(v, i, first, tap, ky, image), seen);
    }
    return seen;
  }
};

class ConvDepthRows : public RowsGenerator<ConvDepthRows> {
 public:
  static constexpr bool kGroupsAreSquares = false;
  DepthWindows<4> windows;              // (kx, ky, channel, g)
  EpilogueInputs<2, 4> epilogue;        // its channel: (channel, g)
  Output<Buffer<float, 4>> out{"out"};  // (a plane's pixels, channel, g, n)

  void generate() {
    taps = RDom(0, side(), 0, side(), "taps");
    // Down the columns, where what a column of taps sees and four sums are registers (5x5 1.65
    // times faster on a Zen 3).
    const bool goes_down = has_cheap_loads() && side() == 5;
    const Expr kx = goes_down ? taps.y : taps.x, ky = goes_down ? taps.x : taps.y;
    const Expr weight = windows.weight(side(), kx, ky, {o, g});
    sums(l, i, v, k, o, g, n) = 0.0f;
    sums(l, i, v, k, o, g, n) =
        fma_f32(pixels(v, i, first_of(k), kx, ky, n), weight, sums(l, i, v, k, o, g, n));
    part = RDom({{0, lane_count()}, {0, kRows}, {0, vectors}, {0, groups()}}, "part");
    const Expr row = row_at(first_of(part[3]), part[1]);
    const Expr place = clamped(row + (start_of(part[2]) + part[0]));
    const Expr sum = sums(part[0], part[1], part[2], part[3], o, g, n);
    out(f, o, g, n) = undef<float>();
    out(place, o, g, n) = epilogue.with_relu(epilogue.with_terms(sum, {o, g}, {place, o, g, n}));
  }

  void schedule() {
    set_mins(in, out);
    set_any_layout(windows.weights);
    epilogue.set_layouts();
    epilogue.specialize(Func(out).update(), [this](Stage stage) { tile(stage); });
    // Tap by tap for all four rows: a sum waits four cycles for the one before. Two units have
    // eight turns in them, so of 5x5 two vectors of a row go together.
    const bool is_row = side() == 5 && vectors == 2 && !has_cheap_loads();
    sums.compute_at(out, is_row ? part[3] : part[2]).store_in(MemoryType::Register);
    sums.bound_extent(l, lane_count()).bound_extent(i, kRows).bound_extent(v, is_row ? 2 : 1);
    sums.vectorize(l).unroll(i).unroll(v);
    sums.update().reorder(l, i, v, taps.x, taps.y).vectorize(l);
    sums.update().unroll(i).unroll(v).unroll(taps.x).unroll(taps.y);
  }

 private:
  void tile(Stage stage) {
    stage.allow_race_conditions()
        .split(g, g, gi, windows.planes, TailStrategy::GuardWithIf)
        .reorder({part[0], part[1], part[2], part[3], o, gi, g, n})
        .vectorize(part[0])
        .unroll(part[1])
        .unroll(part[2])
        .gpu_blocks(g, n)
        .never_partition_all();
  }

  Var f{"f"}, i{"i"}, v{"v"}, k{"k"}, gi{"gi"};
  Func sums{"sums"};
  RDom part, taps;
};

class ConvDepthWeightRows : public RowsGenerator<ConvDepthWeightRows> {
 public:
  static constexpr bool kGroupsAreSquares = true;
  Input<Buffer<float, 4>> dy{"dy"};   // (a plane's pixels, channel, g, n)
  Output<Buffer<float, 4>> dw{"dw"};  // (kx, ky, channel, g)

  void generate() {
    part = RDom({{0, rows()}, {0, vectors}, {0, groups()}, {0, dy.dim(3).extent()}}, "part");
    const RVar i = part[0], v = part[1], k = part[2], image = part[3];
    const Expr first = first_of(k), start = start_of(v);
    // What the vector or the rows before have taken is zero.
    const auto given = [&](const Expr& row) {
      const Expr is_new_row = is_square() || is_whole() || first + row * width >= k * four_rows,
                 is_new_column = v < vectors - 1 || start + l >= v * lane_count();
      return select(is_new_row && is_new_column,
                    dy(clamped(row_at(first, row) + (start + l)), o, g, image), 0.0f);
    };
    std::vector<Expr> sums;
    lanes(l, o, g) = Tuple(std::vector<Expr>(taps(), 0.0f));
    for (int tap = 0; tap < taps(); ++tap) {
      const int kx = tap % side(), ky = tap / side();
      const Expr old = lanes(l, o, g)[tap];
      if (is_square()) {  // in order of what is seen: three rows of dy and nine sums are registers
        const Expr row = i - (ky - reach());
        const Expr x = pixels(v, i, first, kx, reach(), image);
        sums.push_back(select(has_row_at(first, row), fma_f32(x, given(row), old), old));
      } else {
        sums.push_back(fma_f32(pixels(v, i, first, kx, ky, image), given(i), old));
      }
    }
    lanes(l, o, g) = Tuple(sums);
    fold.emplace(lanes, lane_count(), std::vector<Var>{o, g}, add_by_tap);
    dw(kx, ky, o, g) = mux(ky * side() + kx, fold->total());
  }

  void schedule() {
    for (int d = 0; d < 3; ++d) in.dim(d).set_min(0);
    for (int d = 0; d < 4; ++d) {
      dy.dim(d).set_min(0);
      dw.dim(d).set_min(0);
    }
    for (int d = 0; d < 2; ++d) dw.dim(d).set_bounds(0, side());
    Func(dw).gpu_blocks(o, g).unroll(kx).unroll(ky).never_partition_all();
    fold->keep(dw, o);
    lanes.store_in(MemoryType::Register);
    if (!is_square()) tile(lanes.update().specialize(is_whole()));
    tile(lanes.update());
  }

 private:
  int taps() const { return side() * side(); }
  Expr is_whole() { return is_square() || plane() % four_rows == 0; }

  void tile(Stage stage) {
    stage.reorder({l, part[0], part[1], part[2], part[3], o, g})
        .vectorize(l)
        .unroll(part[0])
        .unroll(part[1])
        .never_partition_all();
  }

  Var kx{"kx"}, ky{"ky"};
  Func lanes{"lanes"};
  std::optional<LaneFold> fold;
  RDom part;
};

}  // namespace
}  // namespace ballast::kernels

HALIDE_REGISTER_GENERATOR(ballast::kernels::ConvDepthRows, conv_depth_rows)
HALIDE_REGISTER_GENERATOR(ballast::kernels::ConvDepthWeightRows, conv_depth_weight_rows)
