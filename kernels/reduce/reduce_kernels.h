// Reductions of one axis of a tensor seen as [outer, axis, inner]. The order of additions depends
// on extents and `chunk` only.
#pragma once

#include "kernels/pointwise/pointwise_math.h"
#include "kernels/pointwise/pointwise_recipe.h"
#include "kernels/recipe/lane_fold.h"
#include "kernels/recipe/layout.h"
#include "kernels/recipe/weave.h"
#include "kernels/reduce/extremum.h"
#include "kernels/reduce/narrow_rows.h"
#include "kernels/reduce/row_lengths.h"

#include <cmath>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace ballast::kernels {

inline Halide::Expr reduction_start(const std::string& kind, const Halide::Type& type) {
  using namespace Halide;
  if (kind == "sum" || kind == "any") return Internal::make_zero(type);
  if (kind == "prod" || kind == "all") return Internal::make_one(type);
  if (kind == "max") return type.is_float() ? Expr(-INFINITY) : type.min();
  return type.is_float() ? Expr(INFINITY) : type.max();
}

// NaN wins in max and min; integers wrap.
inline Halide::Expr reduction_fold(const std::string& kind, const Halide::Expr& total,
                                   const Halide::Expr& value) {
  if (kind == "sum") return strict_float(wrapped_add(total, value));
  if (kind == "prod") return strict_float(wrapped_mul(total, value));
  if (kind == "any") return max(total, value);
  if (kind == "all") return min(total, value);
  const Halide::Expr better = kind == "max" ? lt(total, value) : lt(value, total);
  return select(better, value, select(ne(value, value), value, total));
}

template <class Derived, int dimensions>
class ReduceKernel : public Halide::Generator<Derived> {
 public:
  Halide::GeneratorParam<std::string> device_class{"device_class", "cpu"};
  Halide::GeneratorParam<std::string> kind{"kind", "sum"};
  Halide::GeneratorParam<std::string> dtype{"dtype", "f32"};

  Halide::GeneratorInput<Halide::Buffer<>> in{"in", dimensions};
  Halide::GeneratorInput<int> chunk{"chunk"};
  Halide::GeneratorInput<float> divisor{"divisor"};

  // Set where the kernel is compiled at run time (reduce_fused.h): what is reduced instead of `in`,
  // of which only the extents count then.
  std::function<Halide::Expr(const std::vector<Halide::Expr>& at)> chain;

 protected:
  using Expr = Halide::Expr;

  bool is_gpu() const { return device_class.value() == "gpu"; }
  Halide::Type type() const { return storage_type(dtype_named(dtype)); }
  Expr element(const std::vector<Expr>& at) const {
    const Expr stored = chain ? chain(at) : Expr(in(at));
    return dtype.value() == "bool" ? Halide::cast<uint8_t>(stored != 0) : stored;
  }
  Expr start_value() const { return reduction_start(kind, type()); }
  Expr fold(const Expr& total, const Expr& value) const {
    return reduction_fold(kind, total, value);
  }
  // Only f32 sums are divided: a mean is a sum over the number of elements, in its last launch.
  Expr finish(const Expr& total) const {
    return kind.value() == "sum" && type().is_float() ? strict_float(total / divisor) : total;
  }
};

// Along the dense axis: in(r, row) -> out(c, row), c counting chunks of `chunk` elements (a
// multiple of kStep) of a row. Whole steps of a chunk go to kParts vectors side by side, and what
// is left of the row to its last chunk: whole vectors, then the last sixteen elements, of which
// only new ones count. Rows shorter than a vector are taken one by one. On a GPU the lanes of the
// last step beyond the row are idle. The order is that of Fold (axis_recipe.h).
// Short rows, of a vector and less than a step, leave out what they have nothing for.
class ReduceRows : public ReduceKernel<ReduceRows, 2> {
 public:
  static constexpr int kStep = kRowStep;
  static constexpr int kLoads = 4;  // of a GPU's work-item that are in flight
  static constexpr int kParts = kStep / kLanes;
  GeneratorParam<bool> is_short{"is_short", false};
  Input<int> rows_per_group{"rows_per_group"};
  Output<Buffer<>> out{"out", 2};

  void configure() {
    in.set_type(type());
    out.set_type(type());
  }

  void generate() {
    const int width = is_gpu() ? kStep : kLanes;
    int parts = is_gpu() ? 1 : kParts;
    const Expr length = in.dim(0).extent(), start = c * chunk, whole = length / kStep * kStep;
    const Expr is_last = start <= whole && whole < start + chunk;
    Totals start_values{start_value()};
    if (is_extremum()) start_values.push_back(0.0f);
    lanes(l, part, c, row) = Tuple(start_values);
    if (is_gpu()) {
      // Whole steps of the chunk, kLoads of them side by side; then those left.
      const Expr elements = clamp(length - start, 0, chunk), groups = elements / (kStep * kLoads);
      steps = RDom(0, kLoads, 0, chunk / (kStep * kLoads), "steps");
      steps.where(steps.y < groups);
      take(0, start + (steps.y * kLoads + steps.x) * kStep);
      rest = RDom(0, kLoads, "rest");
      const Expr from = start + (groups * kLoads + rest) * kStep;
      rest.where(from < start + elements);
      take(0, min(from, length - 1 - l), from + l < length);
    } else if (is_short) {
      rest = RDom(0, kParts - 1, "rest");
      rest.where((rest + 1) * kLanes <= length);
      take(0, rest * kLanes);
      take_tail(length);
      parts = 2;
    } else {
      steps = RDom(0, kParts, 0, chunk / kStep, "steps");
      const Expr first = start + steps.y * kStep;
      steps.where(first + kStep <= length);
      take(steps.x, first + steps.x * width);
      rest = RDom(0, (length - whole) / kLanes, "rest");
      rest.where(is_last);
      take(0, whole + rest * kLanes);
      take_tail(length, is_last);
    }
    singles(c, row) = start_value();
    RDom single(0, select(!is_gpu() && length < kLanes, length, 0), "single");
    single.where(!is_gpu() && length < kLanes);
    singles(c, row) = fold(singles(c, row), element({single, row}));

    const auto combine = [&](const Totals& a, const Totals& b) {
      if (!is_extremum()) return Totals{fold(a[0], b[0])};
      return Totals{better(a[0], b[0]), strict_float(a[1] + b[1])};
    };
    const auto at = [&](int p) { return values_at(lanes, {l, p, c, row}); };
    Func across("across");
    Totals all_parts = at(0);
    if (parts > 1) all_parts = combine(all_parts, at(1));
    if (parts > 2) all_parts = combine(all_parts, combine(at(2), at(3)));
    across(l, c, row) = Tuple(all_parts);
    LaneFold lane_fold(across, width, {c, row}, combine);
    const Totals& total = lane_fold.total();
    const Expr all = is_extremum() ? extremum(total[0], total[1]) : total[0];
    out(c, row) = finish(is_short ? all : fold(all, singles(c, row)));
    schedule_rows(lane_fold, parts);
  }

 private:
  using Totals = std::vector<Expr>;  // of a lane: one, or of floats' extremum two

  bool is_extremum() const {
    return type().is_float() && (kind.value() == "max" || kind.value() == "min");
  }
  Expr better(const Expr& total, const Expr& value) const {
    return kind.value() == "max" ? larger(total, value) : smaller(total, value);
  }

  // What lies in the vector at `start` goes to the lanes of `to`.
  void take(const Expr& to, const Expr& start, const Expr& is_new = Expr()) {
    const Totals old = values_at(lanes, {l, to, c, row});
    const Expr value = element({start + l, row});
    Totals next{fold(old[0], value)};
    if (is_extremum()) next = {better(old[0], value), with_square(old[1], value)};
    for (size_t k = 0; is_new.defined() && k < next.size(); ++k) {
      next[k] = select(is_new, next[k], old[k]);
    }
    lanes(l, to, c, row) = Tuple(next);
  }

  // What is left of a row behind its whole vectors.
  void take_tail(const Expr& length, const Expr& is_here = Halide::Internal::const_true()) {
    tail = RDom(0, select(length >= kLanes && length % kLanes != 0, 1, 0), "tail");
    tail.where(is_here);
    take(1, length - kLanes + tail, l >= kLanes - length % kLanes);
  }

  void schedule_rows(LaneFold& lane_fold, int parts) {
    set_mins(in, out);
    const Var group("group");
    if (is_gpu()) {  // a work-group per total, a work-item per lane
      Func(out).gpu_blocks(c, row);
      lane_fold.share(out, c, lanes);
      lanes.update(0).unroll(steps.x);
      lanes.update(1).unscheduled();
      singles.compute_at(out, c).store_in(MemoryType::Stack);
      return;
    }
    Func(out)
        .split(row, group, row, rows_per_group, TailStrategy::GuardWithIf)
        .reorder(row, c, group)
        .gpu_blocks(c, group);
    lanes.compute_at(out, row).store_in(MemoryType::Stack).bound(l, 0, kLanes).vectorize(l);
    lanes.bound(part, 0, parts).unroll(part);
    int update = 0;
    if (!is_short) {
      lanes.update(update++).reorder(l, steps.x, steps.y).vectorize(l).unroll(steps.x);
      singles.compute_at(out, row).store_in(MemoryType::Stack);
    }
    Halide::Stage whole_vectors = lanes.update(update++).reorder(l, rest).vectorize(l);
    if (is_short) whole_vectors.unroll(rest);
    lanes.update(update).reorder(l, tail).vectorize(l);
    lane_fold.keep(out, row);
  }

  Var l{"l"}, part{"part"}, c{"c"}, row{"row"};
  Func lanes{"lanes"}, singles{"singles"};
  RDom steps, rest, tail;
};

// Along the dense axis where it is shorter than a vector: in(row * length + r) -> out(row), sixteen
// rows or more side by side in the lanes, the last of them moved inwards over their neighbours.
// `chunk`: vectors of a work-group. Elements change places in registers, those of 4 bytes by whole
// rows; where rows of other elements are longer than four, they are gathered. The order is that of
// ReduceRows.
class ReduceRowsByLane : public ReduceKernel<ReduceRowsByLane, 1> {
 public:
  Input<int> length{"length"};
  Output<Buffer<>> out{"out", 1};

  void configure() {
    in.set_type(type());
    out.set_type(type());
  }

  void generate() {
    const Expr rows = out.dim(0).extent(), vectors = (rows + kLanes - 1) / kLanes;
    all = RDom(0, kLanes, 0, chunk, 0, (vectors + chunk - 1) / chunk, "all");
    const Expr vector = all[2] * chunk + all[1];
    all.where(vector < vectors);
    const Expr first = min(vector * kLanes, rows - kLanes);
    steps = RDom(0, length, "steps");
    Expr next = element({(at + l) * length + steps});
    if (type().bytes() == sizeof(float)) {
      narrow.emplace("narrow", length, at, [&](const Expr& row, const Expr& r) {
        return element({(at + row) * length + r});
      });
      next = narrow->at(l, steps, at);
    }
    total(l, at) = start_value();
    total(l, at) = fold(total(l, at), next);
    Expr value = total(all[0], first);
    for (int count : kCounts) value = select(length == count, folded(count, first), value);
    out(i) = undef(type());
    out(first + all[0]) = finish(value);
  }

  void schedule() {
    set_mins(in, out);
    Halide::Stage update = Func(out).update();
    for (int count : kCounts) schedule_lanes(update.specialize(length == count));
    schedule_lanes(update);
    total.compute_at(out, all[1]).store_in(MemoryType::Stack);
    total.bound_extent(l, kLanes).bound_extent(at, 1).vectorize(l);
    total.update().reorder(l, steps).vectorize(l);
    if (narrow) narrow->schedule({out, all[1]});
  }

 private:
  static constexpr int kCounts[] = {2, 3, 4};  // elements of a row

  Expr folded(int count, const Expr& first) const {
    std::vector<Expr> vectors;
    for (int k = 0; k < count; ++k) {
      vectors.push_back(element({first * count + k * kLanes + all[0]}));
    }
    Expr value = start_value();
    for (const Expr& next : Woven(kLanes).part(vectors)) value = fold(value, next);
    return value;
  }

  void schedule_lanes(Halide::Stage stage) {
    stage.allow_race_conditions().gpu_blocks(all[2]).vectorize(all[0]).never_partition_all();
  }

  Var i{"i"}, l{"l"}, at{"at"};
  std::optional<NarrowRows> narrow;
  Func total{"total"};
  RDom all, steps;
};

// Across the dense axis: in(i, r, outer) -> out(i, c, outer), c counting chunks of `chunk` steps of
// r. Several vectors side by side along i, the last of a row moved inwards over its neighbour:
// whole cache lines, and many totals in flight. On GPUs i may have any stride: short rows lie
// across, a work-item each. The order of additions is that along r in any case.
class ReduceColumns : public ReduceKernel<ReduceColumns, 3> {
 public:
  Input<int> outer_per_group{"outer_per_group"};  // of a CPU's work-group
  Output<Buffer<>> out{"out", 3};

  void configure() {
    in.set_type(type());
    out.set_type(type());
  }

  void generate() {
    total(i, c, o) = start_value();
    steps = RDom(0, chunk, "steps");
    steps.where(c * chunk + steps < in.dim(1).extent());
    total(i, c, o) = fold(total(i, c, o), element({i, c * chunk + steps, o}));
    out(i, c, o) = finish(total(i, c, o));
  }

  void schedule() {
    set_mins(in, out);
    const Var block("block"), inner("inner"), group("group");
    const Expr width = out.dim(0).extent();
    Func func = out;
    if (is_gpu()) {
      in.dim(0).set_stride(Expr());
      constexpr int kItems = 64;
      func.split(i, block, inner, kItems, TailStrategy::GuardWithIf);
      func.reorder(inner, block, c, o).gpu_blocks(block, c, o).gpu_threads(inner);
      total.compute_at(func, inner).store_in(MemoryType::Stack);
      return;
    }
    // Wide blocks read a row as it lies in memory; 16 totals are half of the registers. Halide
    // wants the conditions in this order at each stage.
    std::vector<int> widths{kColumns, kLanes};
    if (type().bytes() <= 4) widths.insert(widths.begin(), kWideColumns);
    const auto fits = [&](int w) {
      return w == kWideColumns ? are_wide_columns(width) : width >= w;
    };
    const auto split = [&](Halide::Stage stage, int w, TailStrategy tail) {
      return stage.split(i, block, inner, w, tail)
          .split(o, group, o, outer_per_group, TailStrategy::GuardWithIf)
          .reorder(inner, o, block, c, group)
          .gpu_blocks(block, c, group);
    };
    for (int w : widths) {
      split(func.specialize(fits(w)), w, TailStrategy::ShiftInwards)
          .vectorize(inner, kLanes)
          .unroll(inner);
    }
    split(func, 1, TailStrategy::RoundUp);
    total.compute_at(func, o).store_in(MemoryType::Stack).bound_storage(i, widths[0]);
    Halide::Stage update = total.update().reorder(i, steps);
    for (Halide::Stage stage : {Halide::Stage(total), update}) {
      for (int w : widths) stage.specialize(fits(w)).vectorize(i, kLanes).unroll(i);
    }
  }

 private:
  Var i{"i"}, c{"c"}, o{"o"};
  Func total{"total"};
  RDom steps;
};

}  // namespace ballast::kernels
