// The gradient of a maximum over windows of 3 x 3, 2 apart, on CPUs, in one launch. Of every plane:
//
//   best   of rows of x the first of the largest of the three taps of neighbouring windows, and which
//   cells  of every window the tap that won, and dy, with no winners around the plane
//   dx     rows and columns that a window begins or ends with (outer ones) take from two windows,
//          those between from one. A step makes two rows, and vectors of both kinds of columns,
//          which it weaves
//
// Cells are on the stack, a whole plane: a vector that lies across two that were just stored waits
// for both. The last step of a column, and of a row, moves inwards and repeats what its neighbour
// did.
#include "kernels/pointwise/pointwise_math.h"
#include "kernels/pool/pool_recipe.h"
#include "kernels/shuffle.h"

#include <functional>
#include <string>
#include <vector>

namespace ballast::kernels {
namespace {

using namespace Halide;

constexpr int kSide = 3, kStride = 2, kRows = kPoolRows;

class PoolThreesGrad : public Generator<PoolThreesGrad> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "cpu"};
  GeneratorParam<int> lanes{"lanes", 16};

  // Rows of cells are `pitch` elements apart, a multiple of `lanes`. Every vector of x begins with an
  // outer column (`start` 0), or with one between (1), or some with the one and some with the other.
  Input<int> top{"top"}, left{"left"}, planes_per_group{"planes_per_group"}, pitch{"pitch"},
      start{"start"};
  Input<Buffer<float, 3>> dy{"dy"}, in{"in"};
  Output<Buffer<float, 3>> dx{"dx"};

  void generate() {
    fold_rows();
    find_winners();
    weave();
  }

  void schedule() {
    for (auto* tensor : {&dy, &in}) {
      for (int d = 0; d < 3; ++d) tensor->dim(d).set_min(0);
    }
    for (int d = 0; d < 3; ++d) dx.dim(d).set_min(0);
    Stage stage = Func(dx).update();
    for (int is_between : {0, 1}) tile(stage.specialize(start == is_between));
    tile(stage);
    for (Func vector : {sums, woven}) {
      vector.compute_at(dx, step[3]).store_in(MemoryType::Register);
      vector.vectorize(l).unroll(j).unroll(i);
      vector.bound_extent(l, lanes).bound_extent(j, kStride).bound_extent(i, kStride);
    }
    cells.compute_at(dx, p).store_in(MemoryType::Stack).never_partition_all();
    cells.update(0).allow_race_conditions().vectorize(none.x);
    cells.update(1).allow_race_conditions().vectorize(window[0]).unroll(window[1]);
    best.compute_at(cells, window[2]).store_in(MemoryType::Register);
    best.bound_extent(l, lanes).bound_extent(i, kFolded).vectorize(l).unroll(i);
  }

 private:
  static constexpr int kFolded = (kRows - 1) * kStride + kSide;  // rows of x of as many of windows

  // Of windows the tap that won, and dy.
  struct Window {
    Expr place, dy;
  };

  Expr cell_at(const Expr& row, const Expr& column) const {
    return unsafe_promise_clamped((row + 1) * pitch + column + 1, 0, kPoolCells - 1);
  }
  // Whether a vector begins with a column between outer ones.
  Expr begins_between(const Expr& column) const {
    return select(start == 0, false, start == 1, true, (column + left) % kStride != 0);
  }

  Expr first_window(const Expr& vector) const {
    return min(vector * lanes, dy.dim(0).extent() - lanes);
  }
  Expr first_row(const Expr& group) const {
    return min(group * kRows, dy.dim(1).extent() - kRows);
  }

  // The first of the largest, a NaN before any number. Padding is as large as what is beside it,
  // and has its place where it comes first.
  void fold_rows() {
    const Expr windows = first_window(v), first = first_row(k) * kStride - top;
    const Expr last_column = in.dim(0).extent() - 1, last_row = in.dim(1).extent() - 1;
    const Expr nth = first + i;
    const Expr row = select(i == 0, max(nth, 0), i == kFolded - 1, min(nth, last_row), nth);
    const auto pixel = [&](const Expr& column) {
      return in(unsafe_promise_clamped(column, 0, last_column),
                unsafe_promise_clamped(row, 0, last_row), p);
    };
    const Expr begin =
        select(start == 2, min(windows * kStride, last_column + 1 - kStride * lanes),
               windows * kStride);
    const Expr low = pixel(begin + l), high = pixel(begin + lanes + l);
    const Expr evens = take(low, high, [](int lane) { return 2 * lane; }),
               odds = take(low, high, [](int lane) { return 2 * lane + 1; });
    const Expr before = pixel(max(begin - 1, 0)),
               after = pixel(min(begin + kStride * lanes, last_column));
    const int width = lanes;
    const Expr is_between = begins_between(begin);
    const std::vector<Expr> taps = {
        select(is_between, take(before, odds, [=](int lane) { return width - 1 + lane; }), evens),
        select(is_between, evens, odds),
        select(is_between, odds, take(evens, after, [](int lane) { return lane + 1; }))};
    Expr value = taps[0], place = select(start != 0 && windows + l < left, 1, 0);
    for (int kx = 1; kx < kSide; ++kx) keep_first(value, place, taps[kx], kx);
    best(l, i, v, k, p) = Tuple(value, place);
  }
  static void keep_first(Expr& value, Expr& place, const Expr& next, const Expr& next_place) {
    const Expr wins = !le(next, value) && eq(value, value);
    place = select(wins, next_place, place);
    value = select(wins, next, value);
  }

  void find_winners() {
    const Expr windows = dy.dim(0).extent(), rows = dy.dim(1).extent();
    none = RDom(0, lanes, 0, (rows + 2) * (pitch / lanes), "none");
    window = RDom({{0, lanes},
                   {0, kRows},
                   {0, (windows + lanes - 1) / lanes},
                   {0, (rows + kRows - 1) / kRows}},
                  "window");
    cells(x, p) = Tuple(undef<int>(), undef<float>());
    cells(unsafe_promise_clamped(none.y * lanes + none.x, 0, kPoolCells - 1), p) =
        Tuple(-1, 0.0f);
    const Expr first = first_row(window[3]), nth = window[1];
    const auto row_of = [&](int ky) {
      return best(window[0], nth * kStride + ky, window[2], window[3], p);
    };
    const Expr is_above = nth == 0 && first * kStride < top;
    Expr value = row_of(0)[0], place = row_of(0)[1] + select(is_above, kSide, 0);
    for (int ky = 1; ky < kSide; ++ky) {
      keep_first(value, place, row_of(ky)[0], row_of(ky)[1] + ky * kSide);
    }
    const Expr column = first_window(window[2]) + window[0], row = first + nth;
    cells(cell_at(row, column), p) =
        Tuple(place, dy(unsafe_promise_clamped(column, 0, windows - 1),
                        unsafe_promise_clamped(row, 0, rows - 1), p));
  }

  void weave() {
    const Expr columns = dx.dim(0).extent(), rows = dx.dim(1).extent();
    const int wide = kStride * lanes;
    const auto column_of = [&](const Expr& vector) { return min(vector * wide, columns - wide); };
    const auto row_of = [&](const Expr& pair) { return min(pair * kStride, rows - kStride); };
    const auto is_between = [](const Expr& padded) { return padded % kStride != 0; };
    // From these padded ones on.
    const Expr at = column_of(v) + left, at_row = row_of(k) + top;
    const Expr begun = (at + 1) / kStride, begun_row = (at_row + 1) / kStride;
    const Expr around = at / kStride, around_row = at_row / kStride;
    // In the order of the taps.
    const auto add = [&](Expr& sum, const Expr& row, const Expr& column, int place) {
      const Window of = window_at(row, column);
      sum = sum.defined() ? select(of.place == place, strict_float(sum + of.dy), sum)
                          : select(of.place == place, of.dy, 0.0f);
    };
    const auto sum_of = [&](bool is_outer_row, bool is_outer) {
      Expr sum;
      for (int ky = is_outer_row ? 0 : 1; ky < kSide; ky += 2) {
        const Expr row = ky == 0 ? begun_row : ky == 1 ? around_row : begun_row - 1;
        if (is_outer) {
          add(sum, row, begun, ky * kSide);
          add(sum, row, begun - 1, ky * kSide + 2);
        } else {
          add(sum, row, around, ky * kSide + 1);
        }
      }
      return sum;
    };
    sums(l, j, i, v, k, p) = mux(i * 2 + j, {sum_of(true, true), sum_of(true, false),
                                             sum_of(false, true), sum_of(false, false)});
    const auto sum = [&](int of_between) { return Expr(sums(l, of_between, i, v, k, p)); };
    const Expr is_odd = begins_between(column_of(v));
    const Expr even = select(is_odd, sum(1), sum(0)), odd = select(is_odd, sum(0), sum(1));
    const auto in_turns = [&](int first) {
      const int width = lanes;
      return take(even, odd, [=](int lane) { return first + lane / 2 + lane % 2 * width; });
    };
    woven(l, j, i, v, k, p) = select(j == 0, in_turns(0), in_turns(lanes / 2));
    step = RDom({{0, lanes},
                 {0, kStride},
                 {0, kStride},
                 {0, (columns + wide - 1) / wide},
                 {0, (rows + 1) / kStride}},
                "step");
    const Expr first = row_of(step[4]), second = first + 1;
    const Expr row = select(is_between(first + top) == (step[2] == 1), first, second);
    dx(x, y, p) = undef<float>();
    dx(column_of(step[3]) + step[1] * lanes + step[0], row, p) =
        woven(step[0], step[1], step[2], step[3], step[4], p);
  }

  void tile(Stage stage) {
    const Var plane_group("plane_group");
    stage.allow_race_conditions()
        .split(p, plane_group, p, planes_per_group, TailStrategy::GuardWithIf)
        .reorder({step[0], step[1], step[2], step[3], step[4], p, plane_group})
        .vectorize(step[0])
        .unroll(step[1])
        .unroll(step[2])
        .gpu_blocks(plane_group)
        .never_partition_all();
  }

  Window window_at(const Expr& row, const Expr& column) const {
    const FuncRef cell = cells(cell_at(row, column + l), p);
    return {cell[0], cell[1]};
  }

  // Lane l is lane place(l) of `a` followed by `b`.
  Expr take(const Expr& a, const Expr& b, const std::function<int(int)>& place) const {
    std::vector<int> places;
    for (int lane = 0; lane < lanes; ++lane) places.push_back(place(lane));
    return take_lanes(a, b, places);
  }

  Var x{"x"}, y{"y"}, p{"p"}, l{"l"}, j{"j"}, i{"i"}, v{"v"}, k{"k"};
  Func best{"best"}, cells{"cells"}, sums{"sums"}, woven{"woven"};
  RDom none, window, step;
};

}  // namespace
}  // namespace ballast::kernels

HALIDE_REGISTER_GENERATOR(ballast::kernels::PoolThreesGrad, pool_threes_grad)
