// Convolution and its gradient towards the input on GPUs with square windows, for groups of few
// channels: a work-item computes a strip, some rows of one or two columns, so that what it loads of
// x and of the window serves several sums in registers. Everything but the loop over channels is
// written out.
#include "kernels/conv/conv_strips_recipe.h"

#include <string>
#include <vector>

namespace ballast::kernels {
namespace {

using namespace Halide;

class ConvStrips : public Generator<ConvStrips> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "gpu"};
  GeneratorParam<int> window{"window", 3}, stride{"stride", 1};
  // Towards the input: `in` is dy, `out` is dx. Without strides that is a convolution which takes
  // the window's taps backwards; a stride divides rows and columns.
  GeneratorParam<bool> is_grad{"is_grad", false};
  GeneratorParam<int> rows{"rows", 7}, columns{"columns", 1},
      channels{"channels", 1};  // of a strip

  Input<int> top{"top"}, left{"left"};
  Input<int> width{"width"}, height{"height"};  // of a plane of `in`
  Input<Buffer<float, 1>> in{"in"};
  Input<Buffer<float, 1>> weights{"weights"};
  EpilogueInputs<1, 4> epilogue;
  // Of a group, and how far apart weights are (ConvProblem).
  Input<int> inputs{"inputs"}, outputs{"outputs"};
  Input<int> in_step{"in_step"}, out_step{"out_step"}, group_step{"group_step"};
  Output<Buffer<float, 4>> out{"out"};

  void generate() {
    const int size = window, strip_rows = rows, strip_columns = columns;
    const Place at(*this, min(i, items() - 1));
    begin(i) = {at.x.seen,
                at.y.seen,
                (at.n * groups() + at.group) * inputs,
                at.group * group_step + (at.c - at.group * outputs) * out_step,
                at.x.result,
                at.y.result,
                at.c,
                at.n};
    const bool is_flipped = is_grad && stride == 1;
    const Expr tap = ky * size + kx, at_tap = begin(i)[3] + o * out_step + c * in_step +
                                              (is_flipped ? size * size - 1 - tap : tap);
    weight(kx, ky, o, c, i) =
        weights(unsafe_promise_clamped(at_tap, 0, weights.dim(0).extent() - 1));
    seen.define(in, width, height, begin(i)[0], begin(i)[1], begin(i)[2] + c, {c, i});
    // A sum is a chain over channels, rows and columns of its window.
    r = RDom({{0, strip_columns},
              {0, strip_rows},
              {0, reach(strip_columns)},
              {0, reach(strip_rows)},
              {0, is_single() ? Expr(1) : inputs}},
             "r");
    const Expr tap_x = tap_of(r[0], r[2]), tap_y = tap_of(r[1], r[3]);
    r.where(is_tap(tap_x, size) && is_tap(tap_y, size));
    total(s, t, o, i) = 0.0f;
    total(r[0], r[1], o, i) = fma_f32(seen(r[2], r[3], {r[4], i}),
                                      weight(as_tap(tap_x, size), as_tap(tap_y, size), o, r[4], i),
                                      total(r[0], r[1], o, i));
    // Of results outside, too, which are not stored: so what they have in common is read once.
    const auto within = [&](const Expr& at, int dimension) {
      return clamp(at, 0, out.dim(dimension).extent() - 1);
    };
    const Expr channel = begin(i)[6] + o, sum = total(s, t, o, i);
    const std::vector<Expr> place = {within(begin(i)[4] + s, 0), within(begin(i)[5] + t, 1),
                                     channel, begin(i)[7]};
    result(s, t, o, i) =
        is_grad ? sum : epilogue.with_relu(epilogue.with_terms(sum, {channel}, place));
    store();
    set_mins(in, weights, out);
    epilogue.set_layouts();
    epilogue.residual.dim(0).set_stride(Expr());
  }

 private:
  static constexpr int kItems = 64;

  // Elements of `in` that so many results along an axis see, and the tap by which result number
  // `result` sees number `element`, or one that does not exist.
  int reach(int results) const {
    return is_spread() ? before() + (results - 1) / stride + 1 : (results - 1) * stride + window;
  }
  // Of one input channel, by which sums are not known to be chains: a loop over channels would keep
  // all places of x in registers.
  bool is_single() const { return channels == 1; }
  bool is_spread() const { return is_grad && stride > 1; }
  int before() const { return (window - 1) / stride; }
  Expr tap_of(const Expr& result, const Expr& element) const {
    const int by = stride;
    return is_spread() ? result - (element - before()) * by : element - result * by;
  }

  // Strips along an axis of `extent` results.
  Expr strips_along(const Expr& extent, const Expr& padding, int results) const {
    const int by = stride;
    const Expr end = is_spread() ? extent + padding - over(padding, by) * by : extent;
    return over(end + results - 1, results);
  }
  Expr across() const { return strips_along(out.dim(0).extent(), left, columns); }
  Expr items() const {
    return across() * down() * over(out.dim(2).extent(), int(channels)) * out.dim(3).extent();
  }
  Expr groups() const { return over(out.dim(2).extent(), outputs); }
  Expr down() const { return strips_along(out.dim(1).extent(), top, rows); }

  // Along an axis: a strip's first result, and the first element of `in` that it sees.
  struct Begin {
    Expr result, seen;
  };
  Begin begin_along(const Expr& strip, const Expr& padding, int results) const {
    const int by = stride;
    if (!is_spread()) return {strip * results, strip * (results * by) - padding};
    const Expr skipped = over(padding, by);
    return {skipped * by + strip * results - padding, skipped + strip * (results / by) - before()};
  }

  struct Place {
    Begin x, y;
    Expr c, n, group;
    Place(const ConvStrips& k, const Expr& item) {
      const Expr across = k.across(), of_plane = across * k.down();
      const Expr planes = over(k.out.dim(2).extent(), int(k.channels));
      const Expr plane = over(item, of_plane), strip = item - plane * of_plane,
                 line = over(strip, across);
      x = k.begin_along(strip - line * across, k.left, k.columns);
      y = k.begin_along(line, k.top, k.rows);
      n = over(plane, planes);
      c = (plane - n * planes) * int(k.channels);
      group = over(c, k.outputs);
    }
  };

  void store() {
    RDom all({{0, int(columns)},
              {0, int(rows)},
              {0, int(channels)},
              {0, kItems},
              {0, (items() + kItems - 1) / kItems}},
             "all");
    const Expr item = all[4] * kItems + all[3];
    const FuncRef at = begin(item);
    std::vector<Expr> place = {at[4] + all[0], at[5] + all[1], at[6] + all[2], at[7]};
    all.where(item < items() && is_below(place[0], out.dim(0).extent()) &&
              is_below(place[1], out.dim(1).extent()));
    for (int d = 0; d < 4; ++d) {
      place[d] = unsafe_promise_clamped(place[d], 0, out.dim(d).extent() - 1);
    }
    Func stored = out;
    stored(Var(), Var(), Var(), Var()) = undef<float>();
    stored(place) = result(all[0], all[1], all[2], item);
    stored.update().allow_race_conditions().unroll(all[0]).unroll(all[1]).unroll(all[2]);
    stored.update().gpu_blocks(all[4]).gpu_threads(all[3]).never_partition_all();
    for (Func of_item : {begin, total, result}) of_item.compute_at(stored, all[3]);
    result.bound_extent(o, channels).unroll(s).unroll(t).unroll(o);
    weight.compute_at(total, r[4]).unroll(kx).unroll(ky).unroll(o);
    seen.schedule(LoopLevel(total, r[4]), LoopLevel(total, r[4]));
    total.bound_extent(o, channels).unroll(s).unroll(t).unroll(o);
    total.update().reorder({r[0], r[1], o, r[2], r[3], r[4], i}).unroll(o);
    for (int written_out = 0; written_out < 4; ++written_out) {
      total.update().unroll(r[written_out]);
    }
    for (Func func : {begin, weight, total, result}) {
      func.store_in(MemoryType::Stack).bound_extent(i, 1).never_partition_all();
    }
  }

  Var i{"i"}, s{"s"}, t{"t"}, o{"o"}, c{"c"}, kx{"kx"}, ky{"ky"};
  Func begin{"begin"}, weight{"weight"}, total{"total"}, result{"result"};
  StripOfPlane seen{"seen"};
  RDom r;
};

}  // namespace
}  // namespace ballast::kernels

HALIDE_REGISTER_GENERATOR(ballast::kernels::ConvStrips, conv_strips)
