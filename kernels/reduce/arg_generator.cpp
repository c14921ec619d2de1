// argmax and argmin along an axis: the first index of the largest or smallest value, or the first
// NaN's. In Tuples the value comes last: Halide stores one component after the other, and what is
// decided by the old value must not read the new one.
#include "kernels/pointwise/pointwise_math.h"
#include "kernels/pointwise/pointwise_recipe.h"
#include "kernels/recipe/lane_fold.h"
#include "kernels/recipe/layout.h"
#include "kernels/reduce/axis_recipe.h"

#include <cmath>
#include <limits>

namespace ballast::kernels {
namespace {

using namespace Halide;

template <class Derived>
class ArgGenerator : public Generator<Derived> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "cpu"};
  GeneratorParam<std::string> kind{"kind", "argmax"};
  GeneratorParam<std::string> dtype{"dtype", "f32"};

 protected:
  bool is_gpu() const { return device_class.value() == "gpu"; }
  Type type() const { return storage_type(dtype_named(dtype)); }
  Expr is_better(const Expr& value, const Expr& old) const {
    return kind.value() == "argmax" ? lt(old, value) : lt(value, old);
  }
};

// Across the dense axis, or across rows that are shorter than a vector: in(i, r, o) -> out(i, o).
// The last vector moves inwards over its neighbour.
class ArgReduce : public ArgGenerator<ArgReduce> {
 public:
  Input<Buffer<>> in{"in", 3};
  Input<int> outer_per_group{"outer_per_group"};  // of a CPU's work-group
  Output<Buffer<>> out{"out", Int(32), 2};

  void configure() { in.set_type(type()); }

  void generate() {
    best(i, o) = Tuple(0, in(i, 0, o));
    steps = RDom(1, in.dim(1).extent() - 1, "steps");
    const Expr value = in(i, steps, o), old = best(i, o)[1];
    const Expr wins = is_better(value, old) || (ne(value, value) && eq(old, old));
    best(i, o) = Tuple(select(wins, steps, best(i, o)[0]), select(wins, value, old));
    out(i, o) = best(i, o)[0];
  }

  void schedule() {
    for (int d = 0; d < 3; ++d) in.dim(d).set_min(0).set_stride(Expr());
    set_mins(out);
    const Var block("block"), inner("inner"), group("group");
    const Expr width = out.dim(0).extent();
    Func func = out;
    if (is_gpu()) {
      constexpr int kItems = 64;
      func.split(i, block, inner, kItems, TailStrategy::GuardWithIf).reorder(inner, block, o);
      func.gpu_blocks(block, o).gpu_threads(inner);
      best.compute_at(func, inner).store_in(MemoryType::Stack);
      return;
    }
    constexpr int kWide = 4 * kLanes;
    const Expr is_dense = in.dim(0).stride() == 1;
    const std::vector<std::pair<Expr, int>> cases = {{width >= kWide && is_dense, kWide},
                                                     {width >= kLanes && is_dense, kLanes},
                                                     {width >= kLanes, kLanes}};
    const auto split = [&](Stage stage, int w, TailStrategy tail) {
      return stage.split(i, block, inner, w, tail)
          .split(o, group, o, outer_per_group, TailStrategy::GuardWithIf)
          .reorder(inner, o, block, group)
          .gpu_blocks(block, group);
    };
    for (const auto& [condition, w] : cases) {
      split(func.specialize(condition), w, TailStrategy::ShiftInwards)
          .vectorize(inner, kLanes)
          .unroll(inner);
    }
    split(func, 1, TailStrategy::RoundUp);
    best.compute_at(func, o).store_in(MemoryType::Stack).bound_storage(i, kWide);
    Stage update = best.update().reorder(i, steps);
    for (Stage stage : {Stage(best), update}) {
      for (const auto& one : cases) stage.specialize(one.first).vectorize(i, kLanes).unroll(i);
    }
  }

 private:
  Var i{"i"}, o{"o"};
  Func best{"best"};
  RDom steps;
};

// Along the dense axis of at least a vector, of floats on CPUs: in(r, row) -> out(row). A row is
// passed over twice, the second time near at hand: for its best value and whether it has a NaN,
// then for where that is, backwards, so that a lane just keeps what it found last. (In one pass
// best value, place and first NaN are three registers a vector, and spill.)
class ArgSearch : public ArgGenerator<ArgSearch> {
 public:
  static constexpr int kParts = kRowStep / kLanes;
  static constexpr int kNowhere = std::numeric_limits<int32_t>::max() - kRowStep;
  Input<Buffer<float, 2>> in{"in"};
  Input<int> rows_per_group{"rows_per_group"};
  Output<Buffer<int32_t, 1>> out{"out"};

  void generate() {
    AxisNest nest("rows", false);
    nest.length = in.dim(0).extent();
    nest.row = row;
    const bool is_max = kind.value() == "argmax";
    const Expr value = in(nest.r, row);
    Fold best(nest, "best",
              {{is_max ? FoldKind::kMax : FoldKind::kMin, value}, {FoldKind::kSquares, value}});
    // What is found is neither worse than `limit` nor `other`: the best value, as no element is a
    // NaN, or a NaN.
    const Expr end = is_max ? INFINITY : -INFINITY, has_nan = ne(best[1], best[1]);
    limit(row) = Tuple(select(has_nan, end, best[0]), select(has_nan, end, NAN));
    places(l, part, row) = kNowhere;
    const Expr whole = nest.length / kRowStep, left = nest.length / kLanes - whole * kParts;
    tail = RDom(0, select(nest.length % kLanes != 0, 1, 0), "tail");
    search(0, nest.length - kLanes + tail);
    rest = RDom(0, left, "rest");
    search(0, whole * kRowStep + (left - 1 - rest) * kLanes);
    steps = RDom(0, kParts, 0, whole, "steps");
    search(steps.x, (whole - 1 - steps.y) * kRowStep);

    const auto first = [](const std::vector<Expr>& a, const std::vector<Expr>& b) {
      return std::vector<Expr>{min(a[0], b[0])};
    };
    Func across("across");
    const auto at = [&](int p) { return places(l, p, row) + p * kLanes + l; };
    across(l, row) = min(min(at(0), at(1)), min(at(2), at(3)));
    LaneFold lane_fold(across, kLanes, {row}, first);
    out(row) = lane_fold.total()[0];

    set_mins(in, out);
    AxisSchedule schedule(nest, out, rows_per_group);
    schedule.keep(best);
    schedule.keep(limit);
    places.compute_at(out, row).store_in(MemoryType::Stack).bound(l, 0, kLanes).vectorize(l);
    places.bound(part, 0, kParts).unroll(part);
    places.update(0).reorder(l, tail).vectorize(l);
    places.update(1).reorder(l, rest).vectorize(l);
    places.update(2).reorder(l, steps.x, steps.y).vectorize(l).unroll(steps.x);
    lane_fold.keep(out, row);
  }

 private:
  // Elements from `index` + those of the parts before on: places are without the latter.
  void search(const Expr& to, const Expr& index) {
    const Expr value = in(index + to * kLanes + l, row);
    const Expr is_other = is_better(limit(row)[0], value) || eq(value, limit(row)[1]);
    places(l, to, row) = select(is_other, places(l, to, row), index);
  }

  Var l{"l"}, part{"part"}, row{"row"};
  Func limit{"limit"}, places{"places"};
  RDom steps, rest, tail;
};

// The same of integers, and on GPUs, in one pass. A lane keeps the best of its
// values, where that was, and where its first NaN was. On GPUs a lane is a work-item, which loads
// several values at a time.
class ArgRows : public ArgGenerator<ArgRows> {
 public:
  static constexpr int kParts = 4, kStep = kParts * kLanes, kItems = 64, kLoads = 4;
  static constexpr int kNowhere = std::numeric_limits<int32_t>::max();
  Input<Buffer<>> in{"in", 2};
  Input<int> rows_per_group{"rows_per_group"};
  Output<Buffer<>> out{"out", Int(32), 1};

  void configure() { in.set_type(type()); }

  void generate() {
    const Expr length = in.dim(0).extent();
    // Before the first value: the worst there is, at the first place that could be.
    lanes(l, part, row) = values(part * kLanes + l, kNowhere, identity());
    // Lanes may see what others have seen: an equal value does not win.
    if (is_gpu()) {
      const Expr whole = length / (kItems * kLoads);
      steps = RDom(0, kLoads, 0, whole, "steps");
      take(0, (steps.y * kLoads + steps.x) * kItems + l);
      rest = RDom(0, (length + kItems - 1) / kItems - whole * kLoads, "rest");
      take(0, min((whole * kLoads + rest) * kItems + l, length - 1));
    } else {
      const Expr whole = length / kStep;
      steps = RDom(0, kParts, 0, whole, "steps");
      take(steps.x, (steps.y * kParts + steps.x) * kLanes + l);
      rest = RDom(0, length / kLanes - whole * kParts, "rest");
      take(0, (whole * kParts + rest) * kLanes + l);
      tail = RDom(0, select(length % kLanes != 0, 1, 0), "tail");
      take(1, length - kLanes + l + tail);
    }

    const auto combine = [&](const std::vector<Expr>& a, const std::vector<Expr>& b) {
      const Expr value = a.back(), other = b.back();
      const Expr wins = is_better(other, value) || (eq(value, other) && b[0] < a[0]);
      std::vector<Expr> both = {select(wins, b[0], a[0])};
      if (has_nan()) both.push_back(min(a[1], b[1]));
      both.push_back(select(wins, other, value));
      return both;
    };
    const auto at = [&](int p) { return values_at(lanes, {l, p, row}); };
    Func across("across");
    across(l, row) =
        Tuple(is_gpu() ? at(0) : combine(combine(at(0), at(1)), combine(at(2), at(3))));
    LaneFold lane_fold(across, is_gpu() ? kItems : kLanes, {row}, combine);
    const std::vector<Expr>& total = lane_fold.total();
    out(row) = has_nan() ? select(total[1] < kNowhere, total[1], total[0]) : total[0];
    schedule_rows(lane_fold);
  }

 private:
  bool has_nan() const { return type().is_float(); }
  Expr identity() const {
    const bool is_max = kind.value() == "argmax";
    if (has_nan()) return is_max ? -INFINITY : INFINITY;
    return is_max ? type().min() : type().max();
  }
  Tuple values(const Expr& index, const Expr& nan, const Expr& value) const {
    return has_nan() ? Tuple(index, nan, value) : Tuple(index, value);
  }
  void take(const Expr& to, const Expr& index) {
    const std::vector<Expr> old = values_at(lanes, {l, to, row});
    const Expr value = in(index, row), wins = is_better(value, old.back());
    Expr nan;
    if (has_nan()) nan = select(ne(value, value), min(old[1], index), old[1]);
    lanes(l, to, row) = values(select(wins, index, old[0]), nan, select(wins, value, old.back()));
  }

  void schedule_rows(LaneFold& lane_fold) {
    const Var group("group");
    set_mins(in, out);
    if (is_gpu()) {
      Func(out).gpu_blocks(row);
      lane_fold.share(out, row, lanes);
      lanes.update(0).unroll(steps.x);
      lanes.update(1).unscheduled();
      return;
    }
    Func(out).split(row, group, row, rows_per_group, TailStrategy::GuardWithIf).gpu_blocks(group);
    lanes.compute_at(out, row).store_in(MemoryType::Stack).bound(l, 0, kLanes).vectorize(l);
    lanes.bound(part, 0, kParts).unroll(part);
    lanes.update(0).reorder(l, steps.x, steps.y).vectorize(l).unroll(steps.x);
    lanes.update(1).reorder(l, rest).vectorize(l);
    lanes.update(2).reorder(l, tail).vectorize(l);
    lane_fold.keep(out, row);
  }

  Var l{"l"}, part{"part"}, row{"row"};
  Func lanes{"lanes"};
  RDom steps, rest, tail;
};

}  // namespace
}  // namespace ballast::kernels

HALIDE_REGISTER_GENERATOR(ballast::kernels::ArgReduce, arg_reduce)
HALIDE_REGISTER_GENERATOR(ballast::kernels::ArgSearch, arg_search)
HALIDE_REGISTER_GENERATOR(ballast::kernels::ArgRows, arg_rows)
