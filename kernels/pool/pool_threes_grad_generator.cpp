// The gradient of a maximum over windows of 3 x 3, 2 apart, on CPUs, from the winners' places that
// pool_threes left. Rows and columns of dx that a window begins or ends with (outer ones) take from
// two windows, those between from one. A step makes two rows, and vectors of both kinds of columns,
// which it weaves. The last step of a column, and of a row, moves inwards and repeats what its
// neighbour did.
#include "kernels/pool/pool_recipe.h"
#include "kernels/shuffle.h"

#include <string>
#include <vector>

namespace ballast::kernels {
namespace {

using namespace Halide;

constexpr int kSide = 3, kStride = 2;

class PoolThreesGrad : public Generator<PoolThreesGrad> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "cpu"};
  GeneratorParam<int> lanes{"lanes", 16};

  Input<int> top{"top"}, left{"left"}, planes_per_group{"planes_per_group"};
  Input<Buffer<float, 3>> dy{"dy"};
  Input<Buffer<int32_t, 3>> place{"place"};
  Output<Buffer<float, 3>> dx{"dx"};

  void generate() {
    const Expr columns = dx.dim(0).extent(), rows = dx.dim(1).extent();
    const int wide = kStride * lanes;
    const auto column_of = [&](const Expr& vector) { return min(vector * wide, columns - wide); };
    const auto row_of = [&](const Expr& pair) { return min(pair * kStride, rows - kStride); };
    // From these padded ones on; the first outer one begins window `begun`.
    const Expr at = column_of(v) + left, at_row = row_of(k) + top;
    const auto is_inner = [](const Expr& padded) { return padded % kStride != 0; };
    begun = (at + 1) / kStride;
    const Expr begun_row = (at_row + 1) / kStride;
    const Windows upper = windows(begun_row - 1, is_inner(at)),
                  lower = windows(begun_row, is_inner(at)),
                  middle = either(is_inner(at_row), upper, lower);
    // In the order of the taps.
    const auto add = [&](const Expr& sum, const Window& window, int ky, int kx) {
      return strict_float(sum + select(window.place == ky * kSide + kx, window.dy, 0.0f));
    };
    const auto add_outer = [&](const Expr& sum, const Windows& row, int ky) {
      return add(add(sum, row.begun, ky, 0), row.ended, ky, 2);
    };
    const Expr zero = 0.0f;
    sums(l, j, i, v, k, p) =
        mux(i * 2 + j, {add_outer(add_outer(zero, lower, 0), upper, 2),
                        add(add(zero, lower.between, 0, 1), upper.between, 2, 1),
                        add_outer(zero, middle, 1), add(zero, middle.between, 1, 1)});
    const auto sum = [&](int is_between) { return Expr(sums(l, is_between, i, v, k, p)); };
    const Expr even = select(is_inner(at), sum(1), sum(0)),
               odd = select(is_inner(at), sum(0), sum(1));
    woven(l, j, i, v, k, p) = select(j == 0, weave(even, odd, 0), weave(even, odd, lanes / 2));
    step = RDom({{0, lanes},
                 {0, kStride},
                 {0, kStride},
                 {0, (rows + 1) / kStride},
                 {0, (columns + wide - 1) / wide}},
                "step");
    const Expr first = row_of(step[3]), second = first + 1;
    const Expr row = select(is_inner(first + top) == (step[2] == 1), first, second);
    dx(x, y, p) = undef<float>();
    dx(column_of(step[4]) + step[1] * lanes + step[0], row, p) =
        woven(step[0], step[1], step[2], step[4], step[3], p);
  }

  void schedule() {
    for (int d = 0; d < 3; ++d) {
      dy.dim(d).set_min(0);
      place.dim(d).set_min(0);
      dx.dim(d).set_min(0);
    }
    const Var plane_group("plane_group");
    Func(dx)
        .update()
        .allow_race_conditions()
        .split(p, plane_group, p, planes_per_group, TailStrategy::GuardWithIf)
        .reorder({step[0], step[1], step[2], step[3], step[4], p, plane_group})
        .vectorize(step[0])
        .unroll(step[1])
        .unroll(step[2])
        .gpu_blocks(plane_group)
        .never_partition_all();
    for (Func stage : {sums, woven}) {
      stage.compute_at(dx, step[3]).store_in(MemoryType::Register).vectorize(l).unroll(j).unroll(i);
      stage.bound_extent(l, lanes).bound_extent(j, kStride).bound_extent(i, kStride);
    }
  }

 private:
  struct Window {
    Expr dy, place;
  };

  // Of a row: those that begin with outer columns, those that end with them, and those around the
  // columns between.
  struct Windows {
    Window begun, ended, between;
  };
  static Window either(const Expr& is_first, const Window& a, const Window& b) {
    return {select(is_first, a.dy, b.dy), select(is_first, a.place, b.place)};
  }
  static Windows either(const Expr& is_first, const Windows& a, const Windows& b) {
    return {either(is_first, a.begun, b.begun), either(is_first, a.ended, b.ended),
            either(is_first, a.between, b.between)};
  }

  // No window there: no place. The last lane may be past those that begin, the first before those
  // that end.
  Windows windows(const Expr& row, const Expr& is_inner) {
    const Expr last = dy.dim(0).extent() - lanes, last_row = dy.dim(1).extent() - 1;
    const auto at = [&](const auto& tensor, const Expr& column) {
      return tensor(unsafe_promise_clamped(clamp(column, 0, last) + l, 0, last + lanes - 1),
                    unsafe_promise_clamped(clamp(row, 0, last_row), 0, last_row), p);
    };
    const auto begun_of = [&](const Expr& value, const Expr& none) {
      return select(begun > last, take(value, none, 1), value);
    };
    const auto ended_of = [&](const Expr& value, const Expr& none) {
      return select(begun < 1, take(none, value, lanes - 1), value);
    };
    const auto place_at = [&](const Expr& column) {
      return select(row >= 0 && row <= last_row, at(place, column), -1);
    };
    Windows w;
    w.begun = {begun_of(at(dy, begun), 0.0f), begun_of(place_at(begun), -1)};
    w.ended = {ended_of(at(dy, begun - 1), 0.0f), ended_of(place_at(begun - 1), -1)};
    w.between = either(is_inner, w.ended, w.begun);
    return w;
  }

  // Lanes of `a` followed by `b`, from `first` on.
  Expr take(const Expr& a, const Expr& b, int first) const {
    std::vector<int> places;
    for (int lane = 0; lane < lanes; ++lane) places.push_back(first + lane);
    return take_lanes(a, b, places);
  }
  // `a` and `b` in turns, from lane `first` of both on.
  Expr weave(const Expr& a, const Expr& b, int first) const {
    std::vector<int> places;
    for (int lane = 0; lane < lanes; ++lane) places.push_back(first + lane / 2 + lane % 2 * lanes);
    return take_lanes(a, b, places);
  }

  Var x{"x"}, y{"y"}, p{"p"}, l{"l"}, j{"j"}, i{"i"}, v{"v"}, k{"k"};
  Func sums{"sums"}, woven{"woven"};
  RDom step;
  Expr begun;
};

}  // namespace
}  // namespace ballast::kernels

HALIDE_REGISTER_GENERATOR(ballast::kernels::PoolThreesGrad, pool_threes_grad)
