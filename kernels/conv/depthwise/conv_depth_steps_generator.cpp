// Depthwise 3x3 and 5x5 of stride 2 that halve square planes, on CPUs, of results that are small
// squares (conv_depth_squares_recipe.h). A row of x is at most two vectors: of these, or of the
// rows of x that belong to two rows of results, every other pixel is one shuffle, and what taps of
// columns further away see a rotation of it, or loaded anew where registers have 8 lanes.
//
//   conv_depth_steps         y: the bits of conv_depth
//   conv_depth_steps_grad    dx: even and odd rows and columns from the taps they have, in order
//   conv_depth_weight_steps  dw: sums over pixels in a vector of sums per tap, added at the end
#include "kernels/conv/depthwise/conv_depth_squares_recipe.h"

#include <functional>
#include <vector>

namespace ballast::kernels {
namespace {

using namespace Halide;

template <class Derived>
class StepsGenerator : public SquaresGenerator<Derived> {
 protected:
  using Base = SquaresGenerator<Derived>;
  using Base::across;
  using Base::column_of;
  using Base::lane_count;
  using Base::pitch;
  using Base::reach;
  using Base::row_of;
  using Base::rows;
  using Base::shifted;
  using Base::side;
  using Base::vectors;
  using Base::zero;

  int whole() const { return 2 * side(); }  // rows and columns of x
  int pixels() const { return whole() * whole(); }
  int margin() const { return pitch() - side(); }  // lanes before a row

  // Rows of x are taken one after the other, each for all the taps that see it, as registers hold
  // neither those that a vector of results sees nor all weights. Step t is the row that the first
  // rows of the windows of vector 0 see first, and t rows on: of vector v, tap row t - apart() * v.
  int apart() const { return 2 * rows(); }
  int steps() const { return apart() * (vectors() - 1) + across(); }
  int first_row() const { return 2 * row_of(0, 0) - reach(); }
  // Whether tap row ky of vector v sees anything of what step t has.
  Expr is_tap(const Expr& v, const Expr& ky, const Expr& t) const {
    const Expr row = t + first_row();
    return v >= 0 && v < vectors() && ky >= 0 && ky < across() && row > -apart() + 1 &&
           row < whole();
  }
};

// Of those that take rows of x. Registers of 8 lanes part a row by one shuffle within their halves
// (shufps): a row's lanes are in the order that it leaves, and columns further away are loaded from
// there, since a rotation would have to cross halves.
template <class Derived>
class PartedGenerator : public StepsGenerator<Derived> {
 protected:
  using Base = StepsGenerator<Derived>;
  using Base::column_of;
  using Base::first_row;
  using Base::lane_count;
  using Base::margin;
  using Base::order;
  using Base::pitch;
  using Base::pixels;
  using Base::reach;
  using Base::rows;
  using Base::shifted;
  using Base::side;
  using Base::steps;
  using Base::whole;
  using Base::zero;

  bool is_in_halves() const override { return lane_count() == 8; }

  // What taps in column kx of windows see of step t, with zeros where they see nothing, in lanes
  // before a row of registers that hold more than 8 only where `is_cleared`. x_at(place): a vector
  // of x.
  Expr seen(const Expr& t, int kx, bool is_cleared, const Var& l,
            const std::function<Expr(int)>& x_at) {
    const int apart = kx - reach(), parity = std::abs(apart) % 2, right = (apart - parity) / 2;
    std::vector<Expr> values;
    for (int step = 0; step < steps(); ++step) {
      const int row = step + first_row();
      values.push_back(is_in_halves() ? every_second_from(row, apart, l, x_at)
                                      : every_second(row, parity, l, x_at));
    }
    Expr value = mux(t, values);
    if (is_in_halves()) return value;
    if (right != 0) value = shifted(after_margin(value, l), right);
    return is_cleared ? after_margin(value, l) : value;
  }

 private:
  Expr after_margin(const Expr& value, const Var& l) const {
    if (margin() == 0) return value;
    const Expr lane = pitch() == lane_count() ? Expr(l) : l % pitch();
    return select(lane >= margin(), value, 0.0f);
  }

  // Every second column of row `row` of x, `apart` columns from those of results or the nearest
  // one there is, in order(), of two vectors that begin and end it.
  Expr from_ends(int row, int apart, const std::function<Expr(int)>& x_at) const {
    const int lanes = lane_count(), second = whole() - lanes;
    return take_lanes(x_at(row * whole()), x_at(row * whole() + second), lanes, [&](int lane) {
      const int at = std::clamp(2 * column_of(order(lane)) + apart, 0, whole() - 1);
      return at < lanes ? at : lanes + at - second;
    });
  }

  // What taps `apart` columns away see of row `row` of x, in order(). What lies before and after
  // the plane is not read.
  Expr every_second_from(int row, int apart, const Var& l,
                         const std::function<Expr(int)>& x_at) const {
    if (row < 0 || row >= whole()) return 0.0f;
    const int lanes = lane_count(), parity = std::abs(apart) % 2,
              begin = row * whole() - 2 * margin() + apart - parity;
    const bool is_inside = begin >= 0 && begin + 2 * lanes <= pixels();
    Expr value = from_ends(row, apart, x_at);
    if (is_inside) {
      value = take_lanes(x_at(begin), x_at(begin + lanes), lanes,
                         [&](int lane) { return 2 * order(lane) + parity; });
    }
    for (int column : {0, side() - 1}) {
      const int of_x = 2 * column + apart;
      if (of_x < 0 || of_x >= whole()) value = select(l == order(margin() + column), 0.0f, value);
    }
    return value;
  }

  // Columns of row `row` of x from column `first` on, laid as those of results, or of this row and
  // the second one after it, laid as two rows of results.
  Expr every_second(int row, int first, const Var& l, const std::function<Expr(int)>& x_at) const {
    const int lanes = lane_count();
    const auto column = [&](int lane) { return std::max(2 * column_of(lane) + first, 0); };
    const auto exists = [&](int which) { return which >= 0 && which < whole(); };
    if (rows() == 1) return exists(row) ? from_ends(row, first, x_at) : Expr(0.0f);
    // The last row of x is read where it ends.
    const auto start = [&](int which) { return std::min(which * whole(), pixels() - lanes); };
    const auto place = [&](int which, int lane) {
      return which * whole() - start(which) + column(lane);
    };
    const bool has_first = exists(row), has_second = exists(row + 2);
    if (!has_first && !has_second) return 0.0f;
    if (has_first != has_second) {
      const int half = has_first ? 0 : 1, only = row + 2 * half;
      return take_lanes(x_at(start(only)), Expr(0.0f), lanes, [&](int lane) {
        return lane / pitch() == half && column_of(lane) >= 0 ? place(only, lane) : zero();
      });
    }
    return take_lanes(x_at(start(row)), x_at(start(row + 2)), lanes, [&](int lane) {
      const int half = lane / pitch();
      return half * lanes + place(row + 2 * half, lane);
    });
  }
};

class ConvDepthSteps : public SquareResults<PartedGenerator<ConvDepthSteps>> {
 public:
  void generate() {
    const auto x_at = [&](int place) {
      return Expr(in(unsafe_promise_clamped(place + l, 0, pixels() - 1), g, n));
    };
    at = RDom(0, windows_of_step(across(), apart()), 0, steps(), "at");
    const auto [vector, ky] = tap_of_step(at.y, at.x, apart());
    const Expr of = clamp(vector, 0, vectors() - 1);
    sums(l, v, g, n) = 0.0f;
    const Expr old = sums(l, of, g, n);
    Expr sum = old;
    for (int kx = 0; kx < across(); ++kx) {
      sum = fma_f32(seen(at.y, kx, false, l, x_at),
                    windows.weight(across(), kx, clamp(ky, 0, across() - 1), {g}), sum);
    }
    sums(l, of, g, n) = select(is_tap(vector, ky, at.y), sum, old);
    store_sums();
  }

  void schedule() {
    schedule_sums();
    sums.update().reorder(l, at.x, at.y).vectorize(l).unroll(at.x).unroll(at.y);
  }

 private:
  RDom at;
};

class ConvDepthStepsGrad : public StepsGenerator<ConvDepthStepsGrad> {
 public:
  Input<Buffer<float, 3>> in{"in"};            // dy: (a plane's pixels, g, n)
  Input<Buffer<float, 3>> weights{"weights"};  // (kx, ky, g)
  Input<int> planes{"planes"};                 // of a work-group
  Output<Buffer<float, 3>> out{"out"};         // (a plane's pixels, g, n)

  void generate() {
    row(l, v, g, n) = with_pitch(l, v, in(place_of(v, l), g, n));
    const auto vector = [&](const Expr& v) { return row(l, v, g, n); };
    // Of rows and columns whose number is even (0) or odd, the taps that lie on them.
    const auto sum_of = [&](int a, int b) {
      Expr sum = 0.0f;
      for (int ky = (a + reach()) % 2; ky < across(); ky += 2) {
        for (int kx = (b + reach()) % 2; kx < across(); kx += 2) {
          sum = with_tap(sum, weights(kx, ky, g), vector, v, (b + reach() - kx) / 2,
                         (a + reach() - ky) / 2);
        }
      }
      return sum;
    };
    sums(l, a, b, v, g, n) = select(a == 0, select(b == 0, sum_of(0, 0), sum_of(0, 1)),
                                    select(b == 0, sum_of(1, 0), sum_of(1, 1)));
    out(f, g, n) = undef<float>();
    rows() == 2 ? store_rows() : store_pieces();
  }

  void schedule() {
    set_mins(in, out);
    set_any_layout(weights);
    Func(out)
        .update()
        .allow_race_conditions()
        .split(g, g, gi, planes, TailStrategy::GuardWithIf)
        .reorder({part[0], part[1], part[2], gi, g, n})
        .vectorize(part[0])
        .unroll(part[1])
        .unroll(part[2])
        .gpu_blocks(g, n)
        .never_partition_all();
    row.compute_at(out, gi).store_in(MemoryType::Register);
    row.bound(l, 0, lane_count()).bound(v, 0, vectors()).vectorize(l).unroll(v);
    sums.compute_at(out, gi).store_in(MemoryType::Register);
    sums.bound(l, 0, lane_count()).bound(v, 0, vectors()).bound(a, 0, 2).bound(b, 0, 2);
    sums.reorder(l, b, a, v).vectorize(l).unroll(b).unroll(a).unroll(v);
  }

 private:
  Expr clamped(const Expr& place) { return unsafe_promise_clamped(place, 0, pixels() - 1); }
  // Lane `lane` of the even columns' sums, then of the odd ones', where column `x` of dx is, of a
  // row in half `half`.
  int lane_of(int x, int half) const {
    return half * pitch() + margin() + x / 2 + x % 2 * lane_count();
  }

  // A row of dx as a vector from its begin on and one up to its end.
  void store_pieces() {
    part = RDom(0, lane_count(), 0, 4, 0, vectors(), "part");
    const Expr piece = part[1] % 2, of = part[1] / 2, vector = part[2];
    const auto sum = [&](int column) { return sums(part[0], of, column, vector, g, n); };
    const int second = whole() - lane_count();
    const auto from = [&](int begin) {
      return take_lanes(sum(0), sum(1), lane_count(),
                        [&](int lane) { return lane_of(begin + lane, 0); });
    };
    const Expr place = (2 * vector + of) * whole() + piece * second + part[0];
    out(clamped(place), g, n) = select(piece == 0, from(0), from(second));
  }

  // Rows of dx from the last on, each up to its end; the first ones from their begin on.
  void store_rows() {
    part = RDom(0, lane_count(), 0, whole(), 0, 1, "part");
    const int before = lane_count() - whole(), skipped = rows() * vectors() - side();
    const Expr at = whole() - 1 - part[1], of = at % 2, number = at / 2 + skipped,
               vector = number / 2;
    const auto row_from = [&](int half, const Expr& phase, const Expr& which, int begin) {
      const auto sum = [&](int column) { return sums(part[0], phase, column, which, g, n); };
      return take_lanes(sum(0), sum(1), lane_count(), [&](int lane) {
        const int x = begin + lane;
        return x < 0 || x >= whole() ? 0 : lane_of(x, half);
      });
    };
    const int first_half = skipped % 2;
    const Expr first =
        take_lanes(row_from(first_half, 0, 0, 0), row_from(first_half, 1, 0, 0), lane_count(),
                   [&](int lane) { return lane < whole() ? lane : lane_count() + lane - whole(); });
    const Expr any =
        select(number % 2 == 0, row_from(0, of, vector, -before), row_from(1, of, vector, -before));
    const Expr place = select(at == 0, 0, at * whole() - before) + part[0];
    out(clamped(place), g, n) = select(at == 0, first, any);
  }

  Var f{"f"}, l{"l"}, v{"v"}, g{"g"}, gi{"gi"}, n{"n"}, a{"a"}, b{"b"};
  Func row{"row"}, sums{"sums"};
  RDom part;
};

class ConvDepthWeightSteps : public SquareWeights<PartedGenerator<ConvDepthWeightSteps>> {
 public:
  void generate() {
    start_sums(steps());
    const RVar step = part.x, image = part.y;
    const auto x_at = [&](int place) {
      return Expr(in(unsafe_promise_clamped(place + l, 0, pixels() - 1), g, image));
    };
    std::vector<Expr> sums;
    for (int tap = 0; tap < taps(); ++tap) {
      const int kx = tap % across(), ky = tap / across();
      const Expr old = old_sum(tap), v = (step - ky) / apart(), of = clamp(v, 0, vectors() - 1),
                 given = with_pitch(l, of, dy(place_of(of, l), g, image));
      const Expr sum = fma_f32(seen(step, kx, true, l, x_at), given, old);
      sums.push_back(select((step - ky) % apart() == 0 && is_tap(v, ky, step), sum, old));
    }
    store_sums(sums);
  }

  void schedule() { schedule_sums(); }
};

}  // namespace
}  // namespace ballast::kernels

HALIDE_REGISTER_GENERATOR(ballast::kernels::ConvDepthSteps, conv_depth_steps)
HALIDE_REGISTER_GENERATOR(ballast::kernels::ConvDepthStepsGrad, conv_depth_steps_grad)
HALIDE_REGISTER_GENERATOR(ballast::kernels::ConvDepthWeightSteps, conv_depth_weight_steps)
