// Gradients of poolings over windows of 3 x 3, 1 or 2 apart, on CPUs, in one launch. Of every
// plane:
//
//   best   for a maximum, of rows of x the first of the largest of the three taps of neighbouring
//          windows, and which
//   cells  what each window gives, and to which tap, with no windows around the plane
//   dx     2 apart, rows and columns that a window begins or ends with (outer ones) take from two
//          windows, those between from one: a step makes two rows, and vectors of both kinds of
//          columns, which it weaves. Side by side, a step makes four rows that take from three each
//
// Cells are on the stack, a whole plane: a vector that lies across two that were just stored waits
// for both. The last step of a column, and of a row, moves inwards and repeats what its neighbour
// did.
#include "kernels/pointwise/pointwise_math.h"
#include "kernels/pool/pool_recipe.h"
#include "kernels/recipe/hints.h"
#include "kernels/recipe/layout.h"
#include "kernels/recipe/shuffle.h"

#include <functional>
#include <vector>

namespace ballast::kernels {
namespace {

using namespace Halide;

constexpr int kSide = 3, kRows = kPoolRows;

class PoolThreesGrad : public AveragingGenerator<PoolThreesGrad> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "cpu"};
  GeneratorParam<bool> is_max{"is_max", true};
  GeneratorParam<int> stride{"stride", 2};
  GeneratorParam<int> lanes{"lanes", 16};

  // Rows of cells are `pitch` elements apart, a multiple of `lanes`. With strides of 2 every vector
  // of x begins with an outer column (`start` 0), or with one between (1), or some with the one and
  // some with the other.
  Input<int> top{"top"}, left{"left"}, planes_per_group{"planes_per_group"}, pitch{"pitch"},
      start{"start"};

  void configure() {
    if (!is_max) add_counts();
    dy_ = add_input<Buffer<float>>("dy", 3);
    if (is_max) in_ = add_input<Buffer<float>>("in", 3);
    dx_ = add_output<Buffer<float>>("dx", 3);
  }

  void generate() {
    begin_cells();
    if (is_max) {
      fold_rows();
      find_winners();
    } else {
      share_out();
    }
    if (stride == 2) {
      weave();
    } else {
      add_up();
    }
  }

  void schedule() {
    set_mins(*dy_, *dx_);
    if (is_max) set_mins(*in_);
    Stage stage = Func(*dx_).update();
    if (stride == 2) {
      for (int is_between : {0, 1}) tile(stage.specialize(start == is_between));
      woven.compute_at(*dx_, step[3]).store_in(MemoryType::Register);
      woven.vectorize(l).unroll(j).unroll(i);
      woven.bound_extent(l, lanes).bound_extent(j, 2).bound_extent(i, 2);
    }
    tile(stage);
    sums.compute_at(*dx_, step[3]).store_in(MemoryType::Register).vectorize(l).unroll(j).unroll(i);
    sums.bound_extent(l, lanes).bound_extent(j, stride == 2 ? 2 : 1);
    sums.bound_extent(i, stride == 2 ? 2 : kRows);
    cells.compute_at(*dx_, p).store_in(MemoryType::Stack).never_partition_all();
    cells.update(0).allow_race_conditions().vectorize(outside.x);
    cells.update(1).allow_race_conditions().vectorize(beside.x).unroll(beside.y);
    if (!is_max) fill_rows(cells.update(2).specialize(have_one_count()));
    fill_rows(cells.update(2));
    if (!is_max) return;
    best.compute_at(cells, window[2]).store_in(MemoryType::Register);
    best.bound_extent(l, lanes).bound_extent(i, folded_rows()).vectorize(l).unroll(i);
  }

 private:
  int folded_rows() const { return (kRows - 1) * stride + kSide; }  // of x, of kRows of windows
  int around() const { return kSide - stride; }  // rows and columns of cells around the plane

  static Expr cell(const Expr& place) { return unsafe_promise_clamped(place, 0, kPoolCells - 1); }
  Expr cell_at(const Expr& row, const Expr& column) const {
    return cell((row + around()) * pitch + column + around());
  }
  // Whether a vector begins with a column between outer ones.
  Expr begins_between(const Expr& column) const {
    return select(start == 0, false, start == 1, true, (column + left) % 2 != 0);
  }

  Expr windows_across() const { return dy_->dim(0).extent(); }
  Expr windows_down() const { return dy_->dim(1).extent(); }
  Expr first_window(const Expr& vector) const {
    return min(vector * lanes, windows_across() - lanes);
  }
  Expr first_row(const Expr& group) const { return min(group * kRows, windows_down() - kRows); }

  static Expr place(int tap) { return cast<uint8_t>(tap); }
  Tuple cell_of(const Expr& given, const Expr& winner) const {
    return is_max ? Tuple(given, winner) : Tuple(given);
  }

  void begin_cells() {
    // Whole rows around the plane, and a vector on both sides of its own rows: the second may pass
    // on into the next row.
    outside = RDom(0, lanes, 0, pitch / lanes, 0, 2 * around(), "outside");
    beside = RDom(0, lanes, 0, 2, around(), windows_down(), "beside");
    const Expr outer = select(outside.z < around(), outside.z, windows_down() + outside.z);
    const Tuple no_window = cell_of(0.0f, place(kSide * kSide));
    cells(x, p) = cell_of(undef<float>(), undef<uint8_t>());
    cells(cell(outer * pitch + outside.y * lanes + outside.x), p) = no_window;
    cells(cell(beside.z * pitch + beside.y * (windows_across() + around()) + beside.x), p) =
        no_window;
    window = RDom({{0, lanes},
                   {0, kRows},
                   {0, (windows_across() + lanes - 1) / lanes},
                   {0, (windows_down() + kRows - 1) / kRows}},
                  "window");
    column = first_window(window[2]) + window[0];
    row = first_row(window[3]) + window[1];
    given = (*dy_)(unsafe_promise_clamped(column, 0, windows_across() - 1),
                   unsafe_promise_clamped(row, 0, windows_down() - 1), p);
  }
  void fill_rows(Stage stage) {
    stage.allow_race_conditions().vectorize(window[0]).unroll(window[1]);
  }

  void share_out() {
    cells(cell_at(row, column), p) =
        average(given, column * stride - left, row * stride - top, kSide, kSide,
                dx_->dim(0).extent(), dx_->dim(1).extent());
  }

  // The first of the largest, a NaN before any number. Padding is as large as what is beside it,
  // and has its place where it comes first.
  void fold_rows() {
    const Expr last = in_->dim(1).extent() - 1, nth = first_row(k) * stride - top + i;
    const Expr of = select(i == 0, max(nth, 0), i == folded_rows() - 1, min(nth, last), nth);
    const std::vector<Expr> taps = stride == 2 ? taps_apart(of) : taps_beside(of);
    const Expr has_padding = stride == 1 || start != 0;
    Expr value = taps[0],
         tap = select(has_padding && first_window(v) + l < left, place(1), place(0));
    for (int kx = 1; kx < kSide; ++kx) keep_first(value, tap, taps[kx], place(kx));
    best(l, i, v, k, p) = Tuple(value, tap);
  }
  Expr last_column() const { return in_->dim(0).extent() - 1; }
  Expr pixel(const Expr& of, const Expr& at) const {
    return (*in_)(unsafe_promise_clamped(at, 0, last_column()),
                  unsafe_promise_clamped(of, 0, in_->dim(1).extent() - 1), p);
  }
  std::vector<Expr> taps_apart(const Expr& of) const {
    const int wide = 2 * lanes;
    const Expr first = first_window(v) * 2;
    const Expr begin = select(start == 2, min(first, last_column() + 1 - wide), first);
    const Expr low = with_next(pixel(of, begin + l), 0),
               high = with_next(pixel(of, begin + lanes + l), 1);
    const Expr evens = take_lanes(low, high, lanes, [](int lane) { return 2 * lane; }),
               odds = take_lanes(low, high, lanes, [](int lane) { return 2 * lane + 1; });
    const Expr before = pixel(of, max(begin - 1, 0)),
               after = pixel(of, min(begin + wide, last_column()));
    const Expr is_between = begins_between(begin);
    return {select(is_between, moved(before, odds, lanes - 1), evens),
            select(is_between, evens, odds), select(is_between, odds, moved(evens, after, 1))};
  }
  // Of the rows that a step has to itself, asks for as much of x as it reads of them, in order.
  Expr with_next(const Expr& value, int nth) const {
    const Expr vectors = (v * kRows * stride + i) * stride + nth;
    const Expr next = pixel(first_row(k) * stride, vectors * lanes + l + kEarly);
    return select(i < kRows * stride, with_early_prefetch(value, next), value);
  }
  // A lane of padding takes what is beside it, which the vector turned by a lane does not have
  // there.
  std::vector<Expr> taps_beside(const Expr& of) const {
    const Expr begin = first_window(v) - left, end = last_column() + 1 - lanes;
    const auto vector = [&](const Expr& first) { return pixel(of, clamp(first, 0, end) + l); };
    const Expr middle = with_next(vector(begin + 1), 0);
    return {
        select(begin < 0, select(l == 0, middle, moved(middle, middle, lanes - 1)), vector(begin)),
        middle,
        select(begin + 2 > end, select(l == lanes - 1, middle, moved(middle, middle, 1)),
               vector(begin + 2))};
  }
  static void keep_first(Expr& value, Expr& place, const Expr& next, const Expr& next_place) {
    const Expr wins = !le(next, value) && eq(value, value);
    place = select(wins, next_place, place);
    value = select(wins, next, value);
  }

  void find_winners() {
    const auto row_of = [&](int ky) {
      return best(window[0], window[1] * stride + ky, window[2], window[3], p);
    };
    const Expr is_above = window[1] == 0 && first_row(window[3]) * stride < top;
    Expr value = row_of(0)[0], tap = row_of(0)[1] + select(is_above, place(kSide), place(0));
    for (int ky = 1; ky < kSide; ++ky) {
      keep_first(value, tap, row_of(ky)[0], row_of(ky)[1] + place(ky * kSide));
    }
    cells(cell_at(row, column), p) = Tuple(given, tap);
  }

  // To what there is of a sum, in the order of the taps.
  void add(Expr& sum, const Expr& of_row, const Expr& of_column, int tap) const {
    const FuncRef of = cells(cell_at(of_row, of_column + l), p);
    if (!is_max) {
      sum = sum.defined() ? strict_float(sum + of) : Expr(of);
      return;
    }
    const Expr wins = of[1] == place(tap);
    sum = sum.defined() ? select(wins, strict_float(sum + of[0]), sum) : select(wins, of[0], 0.0f);
  }

  void add_up() {
    const Expr columns = dx_->dim(0).extent(), rows = dx_->dim(1).extent();
    const auto column_of = [&](const Expr& vector) { return min(vector * lanes, columns - lanes); };
    const auto row_of = [&](const Expr& group) { return min(group * kRows, rows - kRows); };
    Expr sum;
    for (int tap = 0; tap < kSide * kSide; ++tap) {
      add(sum, row_of(k) + i + top - tap / kSide, column_of(v) + left - tap % kSide, tap);
    }
    sums(l, j, i, v, k, p) = sum;
    step = RDom({{0, lanes},
                 {0, 1},
                 {0, kRows},
                 {0, (columns + lanes - 1) / lanes},
                 {0, (rows + kRows - 1) / kRows}},
                "step");
    (*dx_)(x, y, p) = undef<float>();
    (*dx_)(column_of(step[3]) + step[0], row_of(step[4]) + step[2], p) =
        sums(step[0], step[1], step[2], step[3], step[4], p);
  }

  void weave() {
    const Expr columns = dx_->dim(0).extent(), rows = dx_->dim(1).extent();
    const int wide = 2 * lanes;
    const auto column_of = [&](const Expr& vector) { return min(vector * wide, columns - wide); };
    const auto row_of = [&](const Expr& pair) { return min(pair * 2, rows - 2); };
    const auto is_between = [](const Expr& padded) { return padded % 2 != 0; };
    // From these padded ones on.
    const Expr at = column_of(v) + left, at_row = row_of(k) + top;
    const Expr begun = (at + 1) / 2, begun_row = (at_row + 1) / 2;
    const Expr held = at / 2, held_row = at_row / 2;
    const auto sum_of = [&](bool is_outer_row, bool is_outer) {
      Expr sum;
      for (int ky = is_outer_row ? 0 : 1; ky < kSide; ky += 2) {
        const Expr of = ky == 0 ? begun_row : ky == 1 ? held_row : begun_row - 1;
        if (is_outer) {
          add(sum, of, begun, ky * kSide);
          add(sum, of, begun - 1, ky * kSide + 2);
        } else {
          add(sum, of, held, ky * kSide + 1);
        }
      }
      return sum;
    };
    sums(l, j, i, v, k, p) = mux(i * 2 + j, {sum_of(true, true), sum_of(true, false),
                                             sum_of(false, true), sum_of(false, false)});
    const auto sum = [&](int of_between) { return Expr(sums(l, of_between, i, v, k, p)); };
    const Expr is_odd = begins_between(column_of(v));
    const Expr even = select(is_odd, sum(1), sum(0)), odd = select(is_odd, sum(0), sum(1));
    woven(l, j, i, v, k, p) =
        select(j == 0, weave_lanes(even, odd, lanes, 0), weave_lanes(even, odd, lanes, lanes / 2));
    step = RDom({{0, lanes}, {0, 2}, {0, 2}, {0, (columns + wide - 1) / wide}, {0, (rows + 1) / 2}},
                "step");
    const Expr first = row_of(step[4]), second = first + 1;
    const Expr of = select(is_between(first + top) == (step[2] == 1), first, second);
    (*dx_)(x, y, p) = undef<float>();
    (*dx_)(column_of(step[3]) + step[1] * lanes + step[0], of, p) =
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

  // Lane l is lane `first` + l of them.
  Expr moved(const Expr& a, const Expr& b, int first) const {
    return take_lanes(a, b, lanes, [=](int lane) { return first + lane; });
  }

  Var x{"x"}, y{"y"}, p{"p"}, l{"l"}, j{"j"}, i{"i"}, v{"v"}, k{"k"};
  Func best{"best"}, cells{"cells"}, sums{"sums"}, woven{"woven"};
  GeneratorInput<Buffer<float>>*dy_ = nullptr, *in_ = nullptr;
  GeneratorOutput<Buffer<float>>* dx_ = nullptr;
  RDom outside, beside, window, step;
  Expr column, row, given;  // of a window, and its dy
};

}  // namespace
}  // namespace ballast::kernels

HALIDE_REGISTER_GENERATOR(ballast::kernels::PoolThreesGrad, pool_threes_grad)
