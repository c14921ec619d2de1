// Depthwise 3x3 and 5x5 of stride 2 that halve square planes, on CPUs, of results that are small
// squares (conv_depth_squares_recipe.h). A row of x is at most two vectors: of these, or of the
// rows of x that belong to two rows of results, a tap sees every other pixel by one shuffle.
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
  using Base::column_of;
  using Base::lane_count;
  using Base::pitch;
  using Base::reach;
  using Base::row_of;
  using Base::rows;
  using Base::side;
  using Base::vectors;
  using Base::zero;

  int whole() const { return 2 * side(); }  // rows and columns of x
  int pixels() const { return whole() * whole(); }
  int margin() const { return pitch() - side(); }  // lanes before a row

  // value(vector) of vector `which`, where loops over vectors are unrolled.
  Expr of_vector(const Expr& which, const std::function<Expr(int)>& value) const {
    std::vector<Expr> values;
    for (int vector = 0; vector < vectors(); ++vector) values.push_back(value(vector));
    return mux(which, values);
  }

  // What tap (kx, ky) sees of x from lane l of vector v of results; undefined where it sees
  // nothing. x_at(place): a vector of x. Lanes before a row are zero only where they are `cleared`.
  Expr seen(int v, int kx, int ky, bool is_cleared, const Var& l,
            const std::function<Expr(int)>& x_at) const {
    const int lanes = lane_count(), row = 2 * row_of(v, 0) + ky - reach();
    const auto exists = [&](int which) { return which >= 0 && which < whole(); };
    if (rows() == 1) {
      if (!exists(row)) return {};
      const int first = row * whole(), second = whole() - lanes;  // the last vector ends the row
      return cleared(take_lanes(x_at(first), x_at(first + second), lanes,
                                [&](int lane) {
                                  const int at = column(lane, kx);
                                  if (!is_seen(lane, kx)) return 0;
                                  return at < lanes ? at : lanes + at - second;
                                }),
                     kx, is_cleared, l);
    }
    // Each half of one of two rows; the last of x is read where it ends.
    const auto start = [&](int row) { return std::min(row * whole(), pixels() - lanes); };
    const auto place = [&](int row, int lane) {
      return row * whole() - start(row) + column(lane, kx);
    };
    const bool has_first = exists(row), has_second = exists(row + 2);
    if (!has_first && !has_second) return {};
    if (has_first != has_second) {
      const int half = has_first ? 0 : 1, only = row + 2 * half;
      return take_lanes(x_at(start(only)), Expr(0.0f), lanes, [&](int lane) {
        return lane / pitch() == half && is_seen(lane, kx) ? place(only, lane) : zero();
      });
    }
    return cleared(take_lanes(x_at(start(row)), x_at(start(row + 2)), lanes,
                              [&](int lane) {
                                const int half = lane / pitch();
                                if (!is_seen(lane, kx)) return 0;
                                return half * lanes + place(row + 2 * half, lane);
                              }),
                   kx, is_cleared, l);
  }

 private:
  // What column kx of the window in whose result a lane is sees.
  int column(int lane, int kx) const { return 2 * column_of(lane) + kx - reach(); }
  bool is_seen(int lane, int kx) const {
    return column_of(lane) >= 0 && column(lane, kx) >= 0 && column(lane, kx) < whole();
  }

  // With zeros in lanes that see nothing.
  Expr cleared(const Expr& value, int kx, bool is_cleared, const Var& l) const {
    int first = is_cleared ? margin() : 0, last = pitch() - 1;
    if (!is_seen(margin(), kx)) first = margin() + 1;
    if (!is_seen(last, kx)) --last;
    const Expr lane = pitch() == lane_count() ? Expr(l) : l % pitch();
    Expr result = value;
    if (first > 0) result = select(lane >= first, result, 0.0f);
    if (last < pitch() - 1) result = select(lane <= last, result, 0.0f);
    return result;
  }
};

class ConvDepthSteps : public SquareResults<StepsGenerator<ConvDepthSteps>> {
 public:
  void generate() {
    const auto x_at = [&](int place) {
      return Expr(in(unsafe_promise_clamped(place + l, 0, pixels() - 1), g, n));
    };
    sums(l, v, g, n) = of_vector(v, [&](int vector) {
      Expr sum = 0.0f;
      for (int tap = 0; tap < taps(); ++tap) {
        const int kx = tap % across(), ky = tap / across();
        const Expr x = seen(vector, kx, ky, false, l, x_at);
        if (x.defined()) sum = fma_f32(x, windows.weight(across(), kx, ky, {g}), sum);
      }
      return sum;
    });
    store_sums();
  }

  void schedule() { schedule_sums(); }
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
    const auto row_from = [&](int half, const Expr& of, const Expr& vector, int begin) {
      const auto sum = [&](int column) { return sums(part[0], of, column, vector, g, n); };
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

class ConvDepthWeightSteps : public SquareWeights<StepsGenerator<ConvDepthWeightSteps>> {
 public:
  void generate() {
    start_sums();
    const RVar vector = part.x, image = part.y;
    const auto x_at = [&](int place) {
      return Expr(in(unsafe_promise_clamped(place + l, 0, pixels() - 1), g, image));
    };
    const Expr given = with_pitch(l, vector, dy(place_of(vector, l), g, image));
    std::vector<Expr> sums;
    for (int tap = 0; tap < taps(); ++tap) {
      const Expr old = old_sum(tap);
      sums.push_back(of_vector(vector, [&](int which) {
        const Expr x = seen(which, tap % across(), tap / across(), true, l, x_at);
        return x.defined() ? fma_f32(x, given, old) : old;
      }));
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
