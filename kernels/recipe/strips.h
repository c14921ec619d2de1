// What generators share whose work-items, on GPUs, compute strips: some neighbouring rows and
// columns of a plane, written out, so that what windows have in common is loaded once. Needs
// Halide.
#pragma once

#include "kernels/recipe/places.h"

#include <string>
#include <vector>

namespace ballast::kernels {

// One axis of a plane of results that see another through windows.
struct StripAxis {
  int results;  // of a strip
  int window, stride;
  // Towards the input: the plane that is seen has one element to each stride of the results.
  bool is_spread;
  Halide::Expr extent, padding;  // of results; of the windows' plane

  Halide::Expr strips() const {
    return over((is_spread ? extent + padding - skipped() * stride : extent) + results - 1,
                results);
  }
  // A strip's first result, and the first element that it sees.
  Halide::Expr first_result(const Halide::Expr& strip) const {
    return is_spread ? skipped() * stride + strip * results - padding : strip * results;
  }
  Halide::Expr first_seen(const Halide::Expr& strip) const {
    return is_spread ? skipped() + strip * (results / stride) - before()
                     : strip * (results * stride) - padding;
  }
  // Elements that a strip sees, and the tap by which its result number `result` sees number
  // `element`, or one that does not exist.
  int reach() const {
    return is_spread ? before() + (results - 1) / stride + 1 : (results - 1) * stride + window;
  }
  Halide::Expr tap(const Halide::Expr& result, const Halide::Expr& element) const {
    return is_spread ? result - (element - before()) * stride : element - result * stride;
  }

 private:
  int before() const { return (window - 1) / stride; }
  Halide::Expr skipped() const { return over(padding, stride); }  // strides of padding alone
};

// Whether a tap exists, which is known when loops are written out, and such a tap.
inline Halide::Expr is_tap(const Halide::Expr& tap, int taps) { return tap >= 0 && tap < taps; }
inline Halide::Expr as_tap(const Halide::Expr& tap, int taps) {
  return unsafe_promise_clamped(tap, 0, taps - 1);
}

// Where strips are that are numbered along rows, columns and planes.
struct StripPlace {
  Halide::Expr column, row, plane;
  StripPlace(const Halide::Expr& strip, const Halide::Expr& across, const Halide::Expr& down) {
    const Halide::Expr line = over(strip, across);
    column = strip - line * across;
    plane = over(line, down);
    row = line - plane * down;
  }
};

// A work-item's elements of a plane and of what is around it, in registers: by column and row from
// a place on.
class StripOfPlane {
 public:
  explicit StripOfPlane(const std::string& name)
      : column_(name + "_column"), line_(name + "_line"), element_(name) {}

  // Of the plane number `plane` of dense `tensor`, which has one dimension, from (x, y) on; all of
  // them depend on `vars`.
  template <class Tensor>
  void define(Tensor& tensor, const Halide::Expr& width, const Halide::Expr& height,
              const Halide::Expr& x, const Halide::Expr& y, const Halide::Expr& plane,
              const std::vector<Halide::Var>& vars, float around = 0.0f) {
    using namespace Halide;
    const auto with = [&](std::vector<Var> own) {
      own.insert(own.end(), vars.begin(), vars.end());
      return own;
    };
    const auto at = [&](Expr own) {
      std::vector<Expr> place = {std::move(own)};
      place.insert(place.end(), vars.begin(), vars.end());
      return place;
    };
    column_(with({q_})) = clamp(x + q_, 0, width - 1);
    line_(with({j_})) = (plane * height + clamp(y + j_, 0, height - 1)) * width;
    const Expr place =
        unsafe_promise_clamped(line_(at(j_)) + column_(at(q_)), 0, tensor.dim(0).extent() - 1);
    element_(with({q_, j_})) =
        select(is_below(x + q_, width) && is_below(y + j_, height), tensor(place), around);
    tensor.dim(0).set_min(0);
  }

  Halide::Expr operator()(const Halide::Expr& column, const Halide::Expr& row,
                          const std::vector<Halide::Expr>& vars) const {
    std::vector<Halide::Expr> place = {column, row};
    place.insert(place.end(), vars.begin(), vars.end());
    return element_(place);
  }

  // `rows`: where the rows are read that are needed there, of `strip` or a loop in it.
  void schedule(const Halide::LoopLevel& strip, const Halide::LoopLevel& rows) {
    column_.compute_at(strip).unroll(q_);
    line_.compute_at(rows).unroll(j_);
    element_.compute_at(rows).unroll(q_).unroll(j_);
    for (Halide::Func func : {column_, line_, element_}) {
      func.store_in(Halide::MemoryType::Stack).never_partition_all();
    }
  }

 private:
  Halide::Var q_{"q"}, j_{"j"};
  Halide::Func column_, line_, element_;
};

// The results of strips, of which each work-item has one: number (s, t, o) of strip `item`.
struct StripResults {
  static constexpr int kItems = 64;

  Halide::RDom all;
  Halide::Expr s, t, o, item;
  StripResults(int columns, int rows, int planes, const Halide::Expr& items)
      : all({{0, columns}, {0, rows}, {0, planes}, {0, kItems}, {0, (items + kItems - 1) / kItems}},
            "all"),
        s(all[0]),
        t(all[1]),
        o(all[2]),
        item(all[4] * kItems + all[3]) {
    all.where(item < items);
  }
  // Stores `value` of each at `place` in `out`, whose first are column and row, where that exists.
  // Gives where an item computes what it needs for that.
  template <class Out>
  Halide::LoopLevel store(Out& out, std::vector<Halide::Expr> place, const Halide::Expr& value) {
    all.where(is_below(place[0], out.dim(0).extent()) && is_below(place[1], out.dim(1).extent()));
    std::vector<Halide::Var> any(place.size());
    for (size_t d = 0; d < place.size(); ++d) {
      place[d] = unsafe_promise_clamped(place[d], 0, out.dim(static_cast<int>(d)).extent() - 1);
    }
    Halide::Func stored = out;
    stored(any) = Halide::undef<float>();
    stored(place) = value;
    stored.update().allow_race_conditions().unroll(all[0]).unroll(all[1]).unroll(all[2]);
    stored.update().gpu_blocks(all[4]).gpu_threads(all[3]).never_partition_all();
    return {stored, all[3]};
  }
};

}  // namespace ballast::kernels
