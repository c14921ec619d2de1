// Depthwise 3x3 of stride 2 behind a zero in front of each row and column, on CPUs, where planes
// have an even number of rows and columns, so that windows end with them: nothing is copied, and no
// zeros are multiplied but those at two edges. Or 5x5 behind two zeros and before one, y only. y
// and dx have the bits of conv_depth.
//
//   conv_depth_halves         y: pixels of a row are parted into even and odd ones
//   conv_depth_halves_grad    dx: even and odd pixels from 1, 2, 2 or 4 taps, laid in order
//   conv_depth_halves_weight  dw: sums over pixels, a vector of them per tap, folded at the end
#include "kernels/conv/conv_recipe.h"
#include "kernels/conv/depthwise/conv_depth.h"
#include "kernels/conv/depthwise/conv_depth_recipe.h"
#include "kernels/pointwise/pointwise_math.h"
#include "kernels/recipe/hints.h"
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
class HalvesGenerator : public Generator<Derived> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "cpu"};
  GeneratorParam<int> lanes_of_vector{"lanes", 16};
  GeneratorParam<int> window{"window", 3};  // rows and columns of it: 3 or 5

 protected:
  int lane_count() const { return lanes_of_vector; }
  int across() const { return window; }
  int reach() const { return across() / 2; }
  int taps() const { return across() * across(); }
  int seen_rows() const { return 2 * (kRows - 1) + across(); }  // by the windows of a group

  GeneratorInput<int> width{"width"};         // of y and dy: at least a vector
  GeneratorInput<Buffer<float, 3>> in{"in"};  // (a plane's pixels, g, n)
  Var l{"l"}, kx{"kx"}, j{"j"}, v{"v"}, k{"k"}, g{"g"}, n{"n"};

  // The last vector of a row of y or dy moves inwards.
  Expr vectors() { return (width + lane_count() - 1) / lane_count(); }
  Expr start_of(const Expr& v) { return min(v * lane_count(), width - lane_count()); }

  Expr pixel(const Expr& place, const Expr& image) {
    return in(unsafe_promise_clamped(place, 0, in.dim(0).extent() - 1), g, image);
  }

  // Of `height` rows of results the first of group k; the last group ends with them.
  Expr groups(const Expr& height) { return (height + kRows - 1) / kRows; }
  Expr first_of(const Expr& group, const Expr& height) {
    return min(group * kRows, height - kRows);
  }

  // Lane p of what is computed is pixel order_of(p) of a vector.
  int order_of(int lane) const { return has_halves() ? order_of_halves(lane) : lane; }
  bool has_halves() const { return lane_count() == 8; }
  // From the order of pixels to that, and back.
  Expr reordered(const Expr& value) { return has_halves() ? reordered_halves(value) : value; }

  // What the windows of vector v see of x's row j, of those that group k's see, for `height` rows
  // of results: at (l, kx, j, v, k, g, n).
  Func see_rows(const Expr& height) {
    const int lanes = lane_count();
    const Expr row = 2 * first_of(k, height) + j - reach(), last_row = 2 * height - 1;
    const Expr is_early = (j < reach()), is_late = (j > seen_rows() - reach());
    const Expr from = select(is_early, max(row, 0), is_late, min(row, last_row), row),
               at = from * (2 * width) + 2 * start_of(v);
    const auto here = [&](const Expr& place) {
      const Expr value = pixel(place, n);
      return select(is_early, select(row >= 0, value, 0.0f), is_late,
                    select(row <= last_row, value, 0.0f), value);
    };
    const Expr low = here(at + l), high = here(at + lanes + l);
    const auto every_second = [&](const Expr& a, const Expr& b, int first) {
      return take_lanes(a, b, lanes, [&](int lane) { return 2 * order_of(lane) + first; });
    };
    const Expr even = every_second(low, high, 0), odd = every_second(low, high, 1);
    // Those one to the right or to the left, beside `next`.
    const auto shifted = [&](const Expr& pixels, const Expr& next, int right) {
      return take_lanes(pixels, next, lanes, [&](int lane) {
        const int other = order_of(lane) + right;
        return other < 0 || other >= lanes ? lanes : order_of(other);
      });
    };
    const Expr has_before = v > 0, has_after = start_of(v) + lanes < width;
    const auto before = [&](int apart) {  // where there is none, what exists in any case
      return select(has_before, here(at - select(has_before, reach(), 0) + reach() - apart), 0.0f);
    };
    Expr left = shifted(odd, before(1), -1);
    if (has_halves()) {  // two loads and a shuffle where a row is before this one's
      const Expr start = at - 1, first = select(has_before || l > 0, here(start + l), 0.0f);
      left = select(j <= reach(), left, every_second(first, here(start + lanes + l), 0));
    }
    std::vector<Expr> columns{left, even, odd};
    if (reach() > 1) {
      const Expr after = here(at + 2 * lanes - select(has_after, 0, 1));
      columns.insert(columns.begin(), shifted(even, before(2), -1));
      columns.push_back(shifted(even, select(has_after, after, 0.0f), 1));
    }
    Func seen("seen");
    seen(l, kx, j, v, k, g, n) = mux(kx, columns);
    return seen;
  }

  // `value`, the nth of kAsking that ask for as much of x as a vector of a group sees of it, in the
  // order in which it lies: `first` is where that begins, of group k's first row.
  static constexpr int kAsking = 2 * kRows;
  Expr with_next(const Expr& value, const Expr& nth, const Expr& first, const Expr& image) {
    const auto ahead = [&](int half) {
      return pixel(first + (2 * nth + half) * lane_count() + l, image);
    };
    return with_early_prefetch(with_early_prefetch(value, ahead(0)), ahead(1));
  }
  // Where what vector v of group k asks for begins.
  Expr asked_by(const Expr& vector, const Expr& group, const Expr& height) {
    return first_of(group, height) * (4 * width) + vector * (2 * kAsking * lane_count()) + kEarly;
  }

  // Of eight lanes they are more than there are registers: taps see them one by one.
  void keep_rows(Func seen, const LoopLevel& level) {
    if (has_halves()) return;
    seen.compute_at(level).store_in(MemoryType::Register);
    seen.bound_extent(l, lane_count()).bound(kx, 0, across()).bound(j, 0, seen_rows());
    seen.vectorize(l).unroll(kx).unroll(j);
  }
};

class ConvDepthHalves : public HalvesGenerator<ConvDepthHalves> {
 public:
  Input<Buffer<float, 3>> weights{"weights"};  // (kx, ky, g)
  Input<int> planes{"planes"};                 // of a work-group
  EpilogueInputs<1, 3> epilogue;
  Output<Buffer<float, 3>> out{"out"};  // (a plane's pixels, g, n)

  void generate() {
    const Expr height = out.dim(0).extent() / width;
    seen = see_rows(height);
    // A row of x after the other, each for the windows that see it: few registers.
    at = RDom(0, windows_of_step(across(), 2), 0, seen_rows(), "at");
    const auto [of, ky] = tap_of_step(at.y, at.x, 2);
    const Expr row = clamp(of, 0, kRows - 1);
    totals(l, i, v, k, g, n) = 0.0f;
    const Expr old = totals(l, row, v, k, g, n);
    Expr sum = old;
    for (int x = 0; x < across(); ++x) {
      sum = fma_f32(seen(l, x, at.y, v, k, g, n), weights(x, clamp(ky, 0, across() - 1), g), sum);
      if (x == 1) {
        sum = select(at.x == 0, with_next(sum, at.y, asked_by(v, k, height), n), sum);
      }
    }
    totals(l, row, v, k, g, n) = select(of >= 0 && of < kRows && ky < across(), sum, old);
    sums(l, i, v, k, g, n) = reordered(totals(l, i, v, k, g, n));
    part = RDom({{0, lane_count()}, {0, kRows}, {0, vectors()}, {0, groups(height)}}, "part");
    const Expr place = unsafe_promise_clamped(
        (first_of(part[3], height) + part[1]) * width + start_of(part[2]) + part[0], 0,
        out.dim(0).extent() - 1);
    const Expr value = sums(part[0], part[1], part[2], part[3], g, n);
    out(f, g, n) = undef<float>();
    out(place, g, n) = epilogue.with_relu(epilogue.with_terms(value, {g}, {place, g, n}));
  }

  void schedule() {
    set_mins(in, out);
    set_any_layout(weights);
    epilogue.set_layouts();
    epilogue.specialize(Func(out).update(), [this](Stage stage) { tile(stage); });
    for (Func held : {totals, sums}) {
      held.compute_at(out, part[2]).store_in(MemoryType::Register);
      held.bound_extent(l, lane_count()).vectorize(l).bound(i, 0, kRows).unroll(i);
    }
    totals.update().reorder(l, at.x, at.y).vectorize(l).unroll(at.x).unroll(at.y);
  }

 private:
  void tile(Stage stage) {
    stage.allow_race_conditions()
        .split(g, g, gi, planes, TailStrategy::GuardWithIf)
        .reorder({part[0], part[1], part[2], part[3], gi, g, n})
        .vectorize(part[0])
        .unroll(part[1])
        .gpu_blocks(g, n)
        .never_partition_all();
  }

  Var f{"f"}, i{"i"}, gi{"gi"};
  Func seen, totals{"totals"}, sums{"sums"};
  RDom at, part;
};

class ConvDepthHalvesGrad : public HalvesGenerator<ConvDepthHalvesGrad> {
 public:
  Input<Buffer<float, 3>> weights{"weights"};  // (kx, ky, g)
  Input<int> planes{"planes"};                 // of a work-group
  Output<Buffer<float, 3>> out{"out"};         // (a plane's pixels, g, n)

  void generate() {
    const int lanes = lane_count();
    const Expr height = in.dim(0).extent() / width;
    // dy in row i or the next, of vector v or one pixel further on.
    const auto given = [&](int down, int right) {
      const Expr at = (down == 0 ? i : min(i + 1, height - 1)) * width + start_of(v);
      const auto here = [&](const Expr& place) {
        const Expr value = pixel(place, n);
        return down == 0 ? value : select(i + 1 < height, value, 0.0f);
      };
      if (right == 0) return here(at + l);
      const Expr last = in.dim(0).extent() - 1;
      const Expr next = select(start_of(v) + lanes < width, here(min(at + lanes, last)), 0.0f);
      return take_lanes(here(at + l), next, lanes, [](int lane) { return lane + 1; });
    };
    // Pixels of odd columns are in two windows, so are those of odd rows.
    const auto sum_of = [&](int rows, int columns) {
      Expr sum = 0.0f;
      for (int down = 0; down < rows; ++down) {
        for (int right = 0; right < columns; ++right) {
          const int ky = rows == 1 ? 1 : 2 - 2 * down, kx = columns == 1 ? 1 : 2 - 2 * right;
          sum = fma_f32(given(down, right), weights(kx, ky, g), sum);
        }
      }
      return sum;
    };
    sums(l, c, r, v, i, g, n) = select(r == 0, select(c == 0, sum_of(1, 1), sum_of(1, 2)),
                                       select(c == 0, sum_of(2, 1), sum_of(2, 2)));
    part = RDom({{0, lanes}, {0, 2}, {0, 2}, {0, vectors()}, {0, height}}, "part");
    const RVar half = part[1], row = part[2], vector = part[3], pair = part[4];
    const Expr start = 2 * start_of(vector) + half * lanes;
    // What the vector before has written as a whole is not written again.
    part.where(start + lanes > 2 * vector * lanes);
    const auto sum = [&](int column) { return sums(part[0], column, row, vector, pair, g, n); };
    const auto in_order = [&](int first) { return weave_lanes(sum(0), sum(1), lanes, first); };
    const Expr place = unsafe_promise_clamped((2 * pair + row) * (2 * width) + start + part[0], 0,
                                              out.dim(0).extent() - 1);
    out(f, g, n) = undef<float>();
    out(place, g, n) = select(half == 0, in_order(0), in_order(lanes / 2));
  }

  void schedule() {
    set_mins(in, out);
    set_any_layout(weights);
    Func(out)
        .update()
        .allow_race_conditions()
        .split(g, g, gi, planes, TailStrategy::GuardWithIf)
        .reorder({part[0], part[1], part[2], part[3], part[4], gi, g, n})
        .vectorize(part[0])
        .unroll(part[1])
        .unroll(part[2])
        .gpu_blocks(g, n)
        .never_partition_all();
    sums.compute_at(out, part[3]).store_in(MemoryType::Register);
    sums.bound_extent(l, lane_count()).bound(c, 0, 2).bound(r, 0, 2);
    sums.vectorize(l).unroll(c).unroll(r);
  }

 private:
  Var f{"f"}, c{"c"}, r{"r"}, i{"i"}, gi{"gi"};
  Func sums{"sums"};
  RDom part;
};

class ConvDepthHalvesWeight : public HalvesGenerator<ConvDepthHalvesWeight> {
 public:
  Input<Buffer<float, 3>> dy{"dy"};   // (a plane's pixels, g, n)
  Output<Buffer<float, 3>> dw{"dw"};  // (kx, ky, g)

  void generate() {
    const Expr height = dy.dim(0).extent() / width;
    seen = see_rows(height);
    // What the vector or the group before has taken is zero.
    const Expr row = first_of(k, height) + i, column = start_of(v) + l,
               is_new = row >= k * kRows && column >= v * lane_count();
    const Expr place = unsafe_promise_clamped(row * width + column, 0, dy.dim(0).extent() - 1);
    given(l, i, v, k, g, n) = reordered(select(is_new, dy(place, g, n), 0.0f));

    // In order of the rows that are seen, which few registers hold.
    part = RDom({{0, seen_rows()}, {0, vectors()}, {0, groups(height)}, {0, dy.dim(2).extent()}},
                "part");
    const Expr j = part[0], vector = part[1], group = part[2], image = part[3];
    // Beyond the plane comes that of the next image.
    const Expr asked = asked_by(vector, group, height), plane = in.dim(0).extent();
    const Expr is_beyond = asked >= plane, first = select(is_beyond, asked - plane, asked),
               next_image = image + select(is_beyond, 1, 0);
    std::vector<Expr> lane_sums;
    sums(l, g) = Tuple(std::vector<Expr>(taps(), 0.0f));
    for (int tap = 0; tap < taps(); ++tap) {
      const int x = tap % across(), y = tap / across();
      const Expr old = sums(l, g)[tap], given_row = (j - y) / 2;
      Expr sum = fma_f32(seen(l, x, j, vector, group, g, image),
                         given(l, clamp(given_row, 0, kRows - 1), vector, group, g, image), old);
      if (x == 1 && y > 0) sum = with_next(sum, j - 1, first, next_image);
      lane_sums.push_back(
          select((j - y) % 2 == 0 && given_row >= 0 && given_row < kRows, sum, old));
    }
    sums(l, g) = Tuple(lane_sums);
    fold.emplace(sums, lane_count(), std::vector<Var>{g}, add_by_tap);
    dw(kx, ky, g) = mux(ky * across() + kx, fold->total());
  }

  void schedule() {
    set_mins(in, dy);
    set_any_layout(dw);
    for (int d = 0; d < 2; ++d) dw.dim(d).set_bounds(0, across());
    Func(dw).gpu_blocks(g).unroll(kx).unroll(ky).never_partition_all();
    fold->keep(dw, g);
    sums.store_in(MemoryType::Register);
    sums.update().reorder(l, part[0], part[1], part[2], part[3], g).vectorize(l);
    sums.update().unroll(part[0]).never_partition_all();
    keep_rows(seen, LoopLevel(sums, part[1]));
    given.compute_at(sums, part[1]).store_in(MemoryType::Register);
    given.bound_extent(l, lane_count()).bound(i, 0, kRows).vectorize(l).unroll(i);
  }

 private:
  Var i{"i"}, ky{"ky"};
  Func seen, given{"given"}, sums{"sums"};
  std::optional<LaneFold> fold;
  RDom part;
};

}  // namespace
}  // namespace ballast::kernels

HALIDE_REGISTER_GENERATOR(ballast::kernels::ConvDepthHalves, conv_depth_halves)
HALIDE_REGISTER_GENERATOR(ballast::kernels::ConvDepthHalvesGrad, conv_depth_halves_grad)
HALIDE_REGISTER_GENERATOR(ballast::kernels::ConvDepthHalvesWeight, conv_depth_halves_weight)
