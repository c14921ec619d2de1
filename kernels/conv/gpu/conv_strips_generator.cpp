// Convolution and its gradient towards the input on GPUs with square windows, for groups of few
// channels: a work-item computes a strip, some rows of one or two columns, so that what it loads of
// x and of the window serves several sums in registers. Everything but the loop over channels is
// written out.
#include "kernels/conv/conv_recipe.h"
#include "kernels/recipe/strips.h"

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
    const int size = window;
    const bool is_spread = is_grad && stride > 1, is_flipped = is_grad && !is_spread;
    const StripAxis x{columns, size, stride, is_spread, out.dim(0).extent(), left},
        y{rows, size, stride, is_spread, out.dim(1).extent(), top};
    const Expr blocks = over(out.dim(2).extent(), int(channels)),
               items = x.strips() * y.strips() * blocks * out.dim(3).extent();
    const StripPlace place(min(i, items - 1), x.strips(), y.strips());
    const Expr n = over(place.plane, blocks), channel = (place.plane - n * blocks) * int(channels),
               group = over(channel, outputs), groups = over(out.dim(2).extent(), outputs);
    begin(i) = {x.first_seen(place.column),
                y.first_seen(place.row),
                (n * groups + group) * inputs,
                group * group_step + (channel - group * outputs) * out_step,
                x.first_result(place.column),
                y.first_result(place.row),
                channel,
                n};
    const Expr tap = ky * size + kx, at_tap = begin(i)[3] + o * out_step + c * in_step +
                                              (is_flipped ? size * size - 1 - tap : tap);
    weight(kx, ky, o, c, i) =
        weights(unsafe_promise_clamped(at_tap, 0, weights.dim(0).extent() - 1));
    seen.define(in, width, height, begin(i)[0], begin(i)[1], begin(i)[2] + c, {c, i});
    // A sum is a chain over channels, rows and columns of its window. With a loop over channels all
    // places of x stay in registers, so those of one channel have none.
    const Expr loops = channels == 1 ? Expr(1) : inputs;
    r = RDom({{0, x.results}, {0, y.results}, {0, x.reach()}, {0, y.reach()}, {0, loops}}, "r");
    const Expr tap_x = x.tap(r[0], r[2]), tap_y = y.tap(r[1], r[3]);
    r.where(is_tap(tap_x, size) && is_tap(tap_y, size));
    total(s, t, o, i) = 0.0f;
    total(r[0], r[1], o, i) = fma_f32(seen(r[2], r[3], {r[4], i}),
                                      weight(as_tap(tap_x, size), as_tap(tap_y, size), o, r[4], i),
                                      total(r[0], r[1], o, i));
    finish();
    store(items);
    set_mins(in, weights, out);
    epilogue.set_layouts();
    epilogue.residual.dim(0).set_stride(Expr());
  }

 private:
  // The epilogue of results outside, too, which are not stored: so what they have in common is read
  // once.
  void finish() {
    const auto within = [&](const Expr& at, int dimension) {
      return clamp(at, 0, out.dim(dimension).extent() - 1);
    };
    const Expr channel = begin(i)[6] + o, sum = total(s, t, o, i);
    const std::vector<Expr> place = {within(begin(i)[4] + s, 0), within(begin(i)[5] + t, 1),
                                     channel, begin(i)[7]};
    result(s, t, o, i) =
        is_grad ? sum : epilogue.with_relu(epilogue.with_terms(sum, {channel}, place));
  }

  void store(const Expr& items) {
    StripResults all(columns, rows, channels, items);
    const FuncRef at = begin(all.item);
    const LoopLevel item = all.store(out, {at[4] + all.s, at[5] + all.t, at[6] + all.o, at[7]},
                                     result(all.s, all.t, all.o, all.item)),
                    channel(total, r[4]);
    for (Func of_item : {begin, total, result}) of_item.compute_at(item);
    result.bound_extent(o, channels).unroll(s).unroll(t).unroll(o);
    weight.compute_at(channel).unroll(kx).unroll(ky).unroll(o);
    seen.schedule(channel, channel);
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
