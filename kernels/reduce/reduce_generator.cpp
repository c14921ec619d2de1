// Reductions ahead of time: one axis of a dense tensor seen as [outer, axis, inner]. The order of
// additions depends on extents and `chunk` only.
#include "kernels/pointwise/pointwise_math.h"
#include "kernels/pointwise/pointwise_recipe.h"

#include <cmath>

namespace ballast::kernels {
namespace {

using namespace Halide;

Expr identity_of(const std::string& kind, const Type& type) {
  if (kind == "sum" || kind == "any") return Internal::make_zero(type);
  if (kind == "prod" || kind == "all") return Internal::make_one(type);
  if (kind == "max") return type.is_float() ? Expr(-INFINITY) : type.min();
  return type.is_float() ? Expr(INFINITY) : type.max();
}

// NaN wins in max and min.
Expr fold(const std::string& kind, const Expr& total, const Expr& value) {
  if (kind == "sum") return strict_float(total + value);
  if (kind == "prod") return strict_float(total * value);
  if (kind == "any") return max(total, value);
  if (kind == "all") return min(total, value);
  const Expr better = kind == "max" ? lt(total, value) : lt(value, total);
  return select(better, value, select(ne(value, value), value, total));
}

template <class Derived>
class ReduceGenerator : public Generator<Derived> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "cpu"};
  GeneratorParam<std::string> kind{"kind", "sum"};
  GeneratorParam<std::string> dtype{"dtype", "f32"};

 protected:
  bool is_gpu() const { return device_class.value() == "gpu"; }
  Type type() const { return storage_type(dtype_named(dtype)); }
  Expr value(const Expr& loaded) const {
    return dtype.value() == "bool" ? cast<uint8_t>(loaded != 0) : loaded;
  }
  // Only f32 sums are divided: a mean is a sum over the number of elements, in its last launch.
  Expr finish(const Expr& total, const Expr& divisor) const {
    return kind.value() == "sum" && type().is_float() ? strict_float(total / divisor) : total;
  }
};

// Along the dense axis: in(r, row) -> out(c, row), c counting chunks of `chunk` elements (a
// multiple of kWidth) of a row. Whole vectors of a chunk go to kWidth partial totals; what is left
// of the row goes to the last chunk's.
class ReduceRows : public ReduceGenerator<ReduceRows> {
 public:
  static constexpr int kWidth = 32;
  Input<Buffer<>> in{"in", 2};
  Input<int> chunk{"chunk"};
  Input<int> rows_per_group{"rows_per_group"};
  Input<float> divisor{"divisor"};
  Output<Buffer<>> out{"out", 2};

  void configure() {
    in.set_type(type());
    out.set_type(type());
  }

  void generate() {
    const Expr length = in.dim(0).extent();
    const Expr whole = (length / kWidth) * kWidth;
    const Expr start = c * chunk;
    lanes(l, c, row) = identity_of(kind, type());
    steps = RDom(0, chunk / kWidth, "steps");
    steps.where(start + steps * kWidth + kWidth <= length);
    lanes(l, c, row) = fold(kind, lanes(l, c, row), value(in(start + steps * kWidth + l, row)));
    rest(c, row) = identity_of(kind, type());
    RDom tail(0, length - whole, "tail");
    tail.where(start <= whole && whole < start + chunk);
    rest(c, row) = fold(kind, rest(c, row), value(in(whole + tail, row)));
    // Neighbours pairwise: shorter chains, smaller error.
    std::vector<Expr> totals;
    for (int i = 0; i < kWidth; ++i) totals.push_back(lanes(i, c, row));
    for (; totals.size() > 1; totals.resize(totals.size() / 2)) {
      for (size_t i = 0; i < totals.size() / 2; ++i) {
        totals[i] = fold(kind, totals[2 * i], totals[2 * i + 1]);
      }
    }
    out(c, row) = finish(fold(kind, totals[0], rest(c, row)), divisor);
  }

  void schedule() {
    for (int d = 0; d < 2; ++d) {
      in.dim(d).set_min(0);
      out.dim(d).set_min(0);
    }
    const Var group("group");
    if (is_gpu()) {  // a work-group per total, a work-item per lane
      Func(out).gpu_blocks(c, row);
      lanes.compute_at(out, c).gpu_threads(l).store_in(MemoryType::GPUShared);
      lanes.update().gpu_threads(l);
      rest.compute_at(out, c).store_in(MemoryType::Stack);
      return;
    }
    Func(out)
        .split(row, group, row, rows_per_group, TailStrategy::GuardWithIf)
        .reorder(row, c, group)
        .gpu_blocks(c, group);
    lanes.compute_at(out, row).store_in(MemoryType::Stack).bound(l, 0, kWidth);
    lanes.vectorize(l, kLanes).unroll(l);
    lanes.update().reorder(l, steps).vectorize(l, kLanes).unroll(l);
    rest.compute_at(out, row).store_in(MemoryType::Stack);
  }

 private:
  Var l{"l"}, c{"c"}, row{"row"};
  Func lanes{"lanes"}, rest{"rest"};
  RDom steps;
};

// Across the dense axis: in(lane, x, r, outer) -> out(lane, x, c, outer), c counting chunks of
// `chunk` steps of r. Lanes as in loops.h: 16 or 1.
class ReduceColumns : public ReduceGenerator<ReduceColumns> {
 public:
  Input<Buffer<>> in{"in", 4};
  Input<int> chunk{"chunk"};
  Input<float> divisor{"divisor"};
  Output<Buffer<>> out{"out", 4};

  void configure() {
    in.set_type(type());
    out.set_type(type());
  }

  void generate() {
    total(l, x, c, o) = identity_of(kind, type());
    steps = RDom(0, chunk, "steps");
    steps.where(c * chunk + steps < in.dim(2).extent());
    total(l, x, c, o) = fold(kind, total(l, x, c, o), value(in(l, x, c * chunk + steps, o)));
    out(l, x, c, o) = finish(total(l, x, c, o), divisor);
  }

  void schedule() {
    for (int d = 0; d < 4; ++d) {
      in.dim(d).set_min(0);
      out.dim(d).set_min(0);
    }
    const Var xo("xo"), xi("xi");
    const Expr lanes = out.dim(0).extent(), width = out.dim(1).extent();
    if (is_gpu()) {
      constexpr int kItems = 64;
      Func(out).bound(l, 0, 1).split(x, xo, xi, kItems, TailStrategy::GuardWithIf);
      Func(out).reorder(l, xi, xo, c, o).gpu_blocks(xo, c, o).gpu_threads(xi);
      total.compute_at(out, xi).store_in(MemoryType::Stack);
      return;
    }
    // kBlock vectors side by side: whole cache lines, and more than one sum in flight.
    constexpr int kBlock = 4;
    const Expr is_block = lanes == kLanes && width % kBlock == 0;
    const Expr is_vector = lanes == kLanes;
    Func func = out;
    func.reorder(l, x, c, o);
    func.specialize(is_block)
        .split(x, xo, xi, kBlock, TailStrategy::RoundUp)
        .vectorize(l, kLanes)
        .unroll(xi)
        .gpu_blocks(xo, c, o);
    func.specialize(is_vector)
        .split(x, xo, xi, 1, TailStrategy::RoundUp)
        .vectorize(l, kLanes)
        .gpu_blocks(xo, c, o);
    func.specialize(lanes == 1).split(x, xo, xi, 1, TailStrategy::RoundUp).gpu_blocks(xo, c, o);
    func.specialize_fail("lanes are 16 or 1");
    total.compute_at(func, xo).store_in(MemoryType::Stack);
    Stage update = total.update().reorder(l, x, steps);
    for (Stage stage : {Stage(total), update}) {
      stage.specialize(is_block).vectorize(l, kLanes).unroll(x);
      stage.specialize(is_vector).vectorize(l, kLanes);
    }
  }

 private:
  Var l{"l"}, x{"x"}, c{"c"}, o{"o"};
  Func total{"total"};
  RDom steps;
};

// The index of the largest or smallest value of in(lane, x, r, outer) over r: the first such index,
// or the first NaN's.
class ArgReduce : public ReduceGenerator<ArgReduce> {
 public:
  Input<Buffer<>> in{"in", 4};
  Output<Buffer<>> out{"out", Int(32), 3};

  void configure() { in.set_type(type()); }

  void generate() {
    best(l, x, o) = Tuple(in(l, x, 0, o), 0);
    steps = RDom(1, in.dim(2).extent() - 1, "steps");
    const Expr value = in(l, x, steps, o), old = best(l, x, o)[0];
    const Expr better = kind.value() == "argmax" ? lt(old, value) : lt(value, old);
    const Expr wins = better || (ne(value, value) && eq(old, old));
    best(l, x, o) = Tuple(select(wins, value, old), select(wins, steps, best(l, x, o)[1]));
    out(l, x, o) = best(l, x, o)[1];
  }

  void schedule() {
    for (int d = 0; d < 4; ++d) in.dim(d).set_min(0).set_stride(Expr());
    for (int d = 0; d < 3; ++d) out.dim(d).set_min(0);
    const Var xo("xo"), xi("xi");
    const Expr lanes = out.dim(0).extent();
    Func func = out;
    if (is_gpu()) {
      constexpr int kItems = 64;
      func.bound(l, 0, 1).split(x, xo, xi, kItems, TailStrategy::GuardWithIf);
      func.reorder(l, xi, xo, o).gpu_blocks(xo, o).gpu_threads(xi);
      best.compute_at(func, xi).store_in(MemoryType::Stack);
      return;
    }
    func.specialize(lanes == kLanes).vectorize(l, kLanes).gpu_blocks(x, o);
    func.specialize(lanes == 1).gpu_blocks(x, o);
    func.specialize_fail("lanes are 16 or 1");
    best.compute_at(func, x).store_in(MemoryType::Stack);
    Stage update = best.update().reorder(l, x, steps, o);
    for (Stage stage : {Stage(best), update}) {
      stage.specialize(lanes == kLanes).vectorize(l, kLanes);
    }
  }

 private:
  Var l{"l"}, x{"x"}, o{"o"};
  Func best{"best"};
  RDom steps;
};

}  // namespace
}  // namespace ballast::kernels

HALIDE_REGISTER_GENERATOR(ballast::kernels::ReduceRows, reduce_rows)
HALIDE_REGISTER_GENERATOR(ballast::kernels::ReduceColumns, reduce_columns)
HALIDE_REGISTER_GENERATOR(ballast::kernels::ArgReduce, arg_reduce)
