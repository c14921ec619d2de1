// Running sums along an axis, one element after the other, in the order in which it is defined; so
// sums round as numpy's do.
#include "kernels/pointwise/pointwise_recipe.h"
#include "kernels/recipe/hints.h"
#include "kernels/recipe/layout.h"
#include "kernels/recipe/shuffle.h"

namespace ballast::kernels {
namespace {

using namespace Halide;

// in(x, r, o) along r, vectors or elements of x side by side: `chunk` of them are a strip, which a
// work-group takes from end to end. What comes next lies in other pages, so it is asked for.
class CumulativeSum : public Generator<CumulativeSum> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "cpu"};
  GeneratorParam<std::string> dtype{"dtype", "f32"};
  Input<Buffer<>> in{"in", 3};
  Input<int> is_exclusive{"is_exclusive"};  // leaves out the element itself
  Input<int> is_reverse{"is_reverse"};      // begins at the end
  Input<int> lanes{"lanes"};                // 16 or 1
  Input<int> chunk{"chunk"};
  Output<Buffer<>> out{"out", 3};

  void configure() {
    in.set_type(storage_type(dtype_named(dtype)));
    out.set_type(storage_type(dtype_named(dtype)));
  }

  void generate() {
    const bool is_gpu = device_class.value() == "gpu";
    const Expr width = in.dim(0).extent(), length = in.dim(1).extent();
    const Expr vectors = (width + lanes - 1) / lanes, strips = (vectors + chunk - 1) / chunk;
    // The work-items of a GPU are the elements of a strip.
    RDom all = is_gpu ? RDom({{0, lanes}, {0, length}, {0, chunk}, {0, strips}}, "all")
                      : RDom({{0, lanes}, {0, chunk}, {0, length}, {0, strips}}, "all");
    const RVar step = is_gpu ? all[1] : all[2], vector = is_gpu ? all[2] : all[1];
    const Expr number = all[3] * chunk + vector;
    all.where(number < vectors);
    const Expr at_x = min(number * lanes, width - lanes) + all[0];
    out(x, r, o) = undef(in.type());
    const auto in_at = [&](const Expr& of) {
      return in(at_x, select(is_reverse != 0, length - 1 - of, of), o);
    };
    const auto out_at = [&](const Expr& of) {
      return out(at_x, select(is_reverse != 0, length - 1 - of, of), o);
    };
    const Expr zero = Internal::make_zero(in.type()), last = max(step - 1, 0);
    const Expr later = min(step + kAhead, length - 1);
    const Expr added = select(is_exclusive != 0, last, step);
    Expr value = in_at(added), sum = out_at(last);
    if (!is_gpu) {
      value = with_prefetch(value, in_at(later));
      sum = with_prefetch(sum, out_at(later));
    }
    value = select(is_exclusive != 0 && step == 0, zero, value);
    sum = select(step == 0, zero, sum);
    out(at_x, select(is_reverse != 0, length - 1 - step, step), o) = strict_float(sum + value);

    // Schedule.
    set_mins(in, out);
    Stage update = Func(out).update();
    update.allow_race_conditions().gpu_blocks(all[3], o).never_partition_all();
    if (is_gpu) {
      update.gpu_threads(vector);
    } else {
      update.specialize(lanes == kLanes).vectorize(all[0], kLanes);
    }
  }

 private:
  static constexpr int kAhead = 2;
  Var x{"x"}, r{"r"}, o{"o"};
};

// in(x, r, o) along r, `rows` at a time: vectors of 16 of x are summed in registers, and only the
// last of these rows is read again. Read row by row, results wait where rows are whole pages apart:
// CPUs take the next row's read for one of what was just written. Strips are as above, `done` and
// the last rows as below.
class CumulativeColumns : public Generator<CumulativeColumns> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "cpu"};
  GeneratorParam<std::string> dtype{"dtype", "f32"};
  GeneratorParam<int> rows{"rows", 4};
  Input<Buffer<>> in{"in", 3}, done{"done", 3};
  Input<int> is_exclusive{"is_exclusive"}, is_reverse{"is_reverse"};
  Input<int> chunk{"chunk"};
  Output<Buffer<>> out{"out", 3};

  void configure() {
    for (auto* buffer : {&in, &done}) buffer->set_type(storage_type(dtype_named(dtype)));
    out.set_type(storage_type(dtype_named(dtype)));
  }

  void generate() {
    // Algorithm.
    const Expr width = in.dim(0).extent(), length = in.dim(1).extent();
    const Expr zero = Internal::make_zero(in.type());
    const Expr way = select(is_reverse != 0, -1, 1);
    // Row i of those from `first` on, in the order of the sums.
    const auto row = [&](const Expr& i) { return first + way * i; };
    const Expr before = first - way, place = clamp(before, 0, length - 1);
    const Expr sum = done(at + l, place, o);
    const Expr carried = select(is_exclusive != 0, strict_float(sum + in(at + l, place, o)), sum);
    RDom steps(0, rows, "steps");
    total(l, r, at, first, o) = undef(in.type());
    total(l, 0, at, first, o) = select(before == place, carried, zero);
    total(l, steps + 1, at, first, o) =
        strict_float(total(l, steps, at, first, o) + in(at + l, row(steps), o));
    const Expr vectors = (width + kLanes - 1) / kLanes, strips = (vectors + chunk - 1) / chunk;
    RDom all({{0, kLanes}, {0, rows}, {0, chunk}, {0, (length + rows - 1) / rows}, {0, strips}},
             "all");
    const Expr number = all[4] * chunk + all[2];
    all.where(number < vectors);
    const Expr forward = min(all[3] * rows, length - rows);
    const Expr start = select(is_reverse != 0, length - 1 - forward, forward);
    const Expr x = min(number * kLanes, width - kLanes), to = start + way * all[1];
    out(l, r, o) = undef(in.type());
    out(x + all[0], to, o) = select(is_exclusive != 0, total(all[0], all[1], x, start, o),
                                    total(all[0], all[1] + 1, x, start, o));

    // Schedule.
    set_mins(in, done, out);
    Stage update = Func(out).update();
    update.allow_race_conditions().gpu_blocks(all[4], o).never_partition_all();
    update.vectorize(all[0]).unroll(all[1]);
    update.specialize(is_exclusive == 0 && is_reverse == 0);
    total.compute_at(Func(out), all[2]).store_in(MemoryType::Register);
    total.bound_extent(l, kLanes).bound_extent(at, 1).bound_extent(first, 1).bound_extent(o, 1);
    total.vectorize(l).unroll(r);
    total.update(0).vectorize(l);
    total.update(1).vectorize(l).unroll(steps);
  }

 private:
  Var l{"l"}, r{"r"}, at{"at"}, first{"first"}, o{"o"};
  Func total{"total"};
};

// in(k, row) along k, 16 rows at a time: blocks of 16 x 16 are transposed in registers, summed by
// vectors of 16 rows and transposed back; or one row, for few: a chain of additions. `done` is the
// result's own buffer, of which a block reads what the one before it wrote. The last block of a row
// moves inwards and repeats a part of its neighbour.
class CumulativeRows : public Generator<CumulativeRows> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "cpu"};
  GeneratorParam<std::string> dtype{"dtype", "f32"};
  GeneratorParam<int> rows_at_once{"rows_at_once", kLanes};  // or 1
  Input<Buffer<>> in{"in", 2}, done{"done", 2};
  Input<int> is_exclusive{"is_exclusive"}, is_reverse{"is_reverse"};
  Output<Buffer<>> out{"out", 2};

  void configure() {
    for (auto* buffer : {&in, &done}) buffer->set_type(storage_type(dtype_named(dtype)));
    out.set_type(storage_type(dtype_named(dtype)));
  }

  void generate() {
    // Algorithm.
    const Expr length = in.dim(0).extent(), rows = in.dim(1).extent();
    const Expr zero = Internal::make_zero(in.type());
    const auto row_at = [&](const Expr& number) { return min(number, rows - 1); };
    const bool is_single = rows_at_once == 1;
    block(l, r, at, n) = in(at + l, row_at(n + r));
    std::vector<Func> columns;
    if (!is_single) columns = transpose_block(block, kLanes, 4, l, r, {at, n});
    const Expr before = select(is_reverse != 0, at + kLanes, at - 1);
    const Expr place = clamp(before, 0, length - 1), sum = done(place, row_at(n + l));
    const Expr carried =
        select(is_exclusive != 0, strict_float(sum + in(place, row_at(n + l))), sum);
    RDom steps(0, kLanes, "steps");
    const auto column = [&](const Expr& of) {
      return is_single ? block(of, l, at, n) : columns.back()(l, of, at, n);
    };
    total(l, r, at, n) = undef(in.type());
    total(l, 0, at, n) = select(before == place, carried, zero);
    total(l, steps + 1, at, n) =
        strict_float(total(l, steps, at, n) +
                     select(is_reverse != 0, column(kLanes - 1 - steps), column(steps)));
    const auto sum_of = [&](const Expr& of) {
      return select(is_exclusive != 0, total(l, of, at, n), total(l, of + 1, at, n));
    };
    sums(l, r, at, n) = select(is_reverse != 0, sum_of(kLanes - 1 - r), sum_of(r));
    std::vector<Func> back;
    if (!is_single) back = transpose_block(sums, kLanes, 4, l, r, {at, n});
    RDom all({{0, kLanes},
              {0, rows_at_once},
              {0, (length + kLanes - 1) / kLanes},
              {0, (rows + rows_at_once - 1) / rows_at_once}},
             "all");
    const Expr forward = min(all[2] * kLanes, length - kLanes);
    const Expr start = select(is_reverse != 0, length - kLanes - forward, forward);
    const Expr row = all[3] * rows_at_once;
    all.where(row + all[1] < rows);
    out(k, n) = undef(in.type());
    const Expr ahead = out(start + all[0] + 2 * kLanes - 1, row + all[1]);
    out(start + all[0], row + all[1]) =
        is_single ? sums(all[1], all[0], start, row)
                  : with_prefetch(back.back()(all[0], all[1], start, row), ahead);

    // Schedule.
    set_mins(in, done, out);
    Stage update = Func(out).update();
    update.allow_race_conditions().gpu_blocks(all[3]).unroll(all[1]).never_partition_all();
    is_single ? update.unroll(all[0]) : update.vectorize(all[0]);
    for (const auto& list : {columns, {total}, back}) {
      for (Func func : list) hold(func, all[2]);
    }
    total.update(0).vectorize(l);
    total.update(1).vectorize(l).unroll(steps);
  }

 private:
  Var k{"k"}, l{"l"}, r{"r"}, at{"at"}, n{"n"};
  Func block{"block"}, total{"total"}, sums{"sums"};

  void hold(Func func, const RVar& loop) {
    func.compute_at(Func(out), loop).store_in(MemoryType::Register);
    func.bound_extent(l, rows_at_once).bound_extent(at, 1).bound_extent(n, 1);
    func.vectorize(l).unroll(r);
  }
};

}  // namespace
}  // namespace ballast::kernels

HALIDE_REGISTER_GENERATOR(ballast::kernels::CumulativeSum, cumsum)
HALIDE_REGISTER_GENERATOR(ballast::kernels::CumulativeColumns, cumsum_columns)
HALIDE_REGISTER_GENERATOR(ballast::kernels::CumulativeRows, cumsum_rows)
