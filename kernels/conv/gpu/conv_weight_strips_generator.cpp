// The gradient of a convolution towards the weights on GPUs with square windows, for groups of few
// channels. A work-group adds up all taps of an input channel for some output channels: its items
// go over strips of dy, some rows of one or two columns, each with all the sums in registers. Then
// the items' sums are added through local memory.
#include "kernels/recipe/fma.h"
#include "kernels/recipe/layout.h"
#include "kernels/recipe/strips.h"

#include <string>

namespace ballast::kernels {
namespace {

using namespace Halide;

class ConvWeightStrips : public Generator<ConvWeightStrips> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "gpu"};
  GeneratorParam<int> window{"window", 3}, stride{"stride", 1};
  GeneratorParam<int> rows{"rows", 7}, columns{"columns", 1};  // of a strip
  GeneratorParam<int> channels{"channels", 1};                 // of dy, of a work-group
  GeneratorParam<int> folds{"folds", 8};  // items that first add up each sum's share

  Input<int> top{"top"}, left{"left"};
  Input<int> out_w{"out_w"}, out_h{"out_h"}, in_w{"in_w"}, in_h{"in_h"}, samples{"samples"};
  Input<Buffer<float, 1>> dy{"dy"};
  Input<Buffer<float, 1>> in{"in"};
  Input<int> group_outputs{"group_outputs"};
  Input<int> turns{"turns"};  // strips of an item
  // (tap, output channel of a block, input channel, block, part)
  Output<Buffer<float, 5>> dw{"dw"};

  void generate() {
    const int size = window, by = stride, taps = size * size;
    const StripAxis across{columns, size, by, false, out_w, left},
        down{rows, size, by, false, out_h, top};
    const Expr all_strips = across.strips() * down.strips() * samples;
    // Where a strip is; those past the last are far outside.
    constexpr int kOutside = -(1 << 24);
    const Expr number = (part * turns + turn) * kItems + item;
    const StripPlace place(min(number, all_strips - 1), across.strips(), down.strips());
    begin(turn, item, part) = {across.first_result(place.column),
                               select(number < all_strips, down.first_result(place.row), kOutside),
                               place.plane};
    const FuncRef at = begin(turn, item, part);
    const Expr first = block * int(channels), group = over(first, group_outputs),
               inputs = dw.dim(2).extent(), outputs = dw.dim(3).extent() * int(channels);
    given.define(dy, out_w, out_h, at[0], at[1], at[2] * outputs + first + o,
                 {o, turn, item, block, part});
    seen.define(in, in_w, in_h, at[0] * by - left, at[1] * by - top,
                (at[2] * over(outputs, group_outputs) + group) * inputs + i,
                {turn, item, i, block, part});
    r = RDom({{0, across.results},
              {0, down.results},
              {0, across.reach()},
              {0, down.reach()},
              {0, turns}},
             "r");
    const Expr tap_x = across.tap(r[0], r[2]), tap_y = down.tap(r[1], r[3]);
    r.where(is_tap(tap_x, size) && is_tap(tap_y, size));
    total(kx, ky, o, item, i, block, part) = 0.0f;
    const Expr x = as_tap(tap_x, size), y = as_tap(tap_y, size);
    total(x, y, o, item, i, block, part) = fma_f32(seen(r[2], r[3], {r[4], item, i, block, part}),
                                                   given(r[0], r[1], {o, r[4], item, block, part}),
                                                   total(x, y, o, item, i, block, part));
    of_item(tap, o, item, i, block, part) = total(tap % size, tap / size, o, item, i, block, part);

    const int share = kItems / folds;
    const RDom items(0, share, "items"), shares(0, int(folds), "shares");
    sum(tap, o, fold, i, block, part) = 0.0f;
    sum(tap, o, fold, i, block, part) = strict_float(
        sum(tap, o, fold, i, block, part) + of_item(tap, o, fold * share + items, i, block, part));
    folded(tap, o, fold, i, block, part) = sum(tap, o, fold, i, block, part);
    result(tap, o, i, block, part) = 0.0f;
    result(tap, o, i, block, part) =
        strict_float(result(tap, o, i, block, part) + folded(tap, o, shares, i, block, part));
    dw(tap, o, i, block, part) = result(tap, o, i, block, part);
    set_mins(dw);
    schedule_all(taps, items, shares);
  }

 private:
  static constexpr int kItems = 128;

  void schedule_all(int taps, const RDom& items, const RDom& shares) {
    const Var to("to"), toh("toh");
    dw.bound(tap, 0, taps).bound(o, 0, channels);
    dw.fuse(tap, o, to).reorder(to, block, i, part).gpu_blocks(block, i, part).gpu_threads(to);
    dw.never_partition_all();
    result.compute_at(dw, to).store_in(MemoryType::Stack);
    result.update().unroll(shares.x);
    folded.compute_at(dw, block).store_in(MemoryType::GPUShared);
    folded.bound(tap, 0, taps).bound(o, 0, channels).bound(fold, 0, folds);
    folded.fuse(tap, o, to).fuse(to, fold, toh).gpu_threads(toh).never_partition_all();
    sum.compute_at(folded, toh).store_in(MemoryType::Stack);
    sum.update().unroll(items.x, 8);
    of_item.compute_at(dw, block).store_in(MemoryType::GPUShared);
    of_item.bound(tap, 0, taps).bound(o, 0, channels).bound(item, 0, kItems);
    of_item.unroll(tap).unroll(o).gpu_threads(item).never_partition_all();
    total.compute_at(of_item, item).store_in(MemoryType::Stack).never_partition_all();
    total.bound(kx, 0, window).bound(ky, 0, window).bound(o, 0, channels);
    total.unroll(kx).unroll(ky).unroll(o);
    total.update().reorder({r[0], r[1], o, r[2], r[3], r[4], item, i, block, part}).unroll(o);
    for (int written_out = 0; written_out < 4; ++written_out) {
      total.update().unroll(r[written_out]);
    }
    begin.compute_at(total, r[4]);
    begin.store_in(MemoryType::Stack);
    given.schedule(LoopLevel(total, r[4]), LoopLevel(total, r[4]));
    seen.schedule(LoopLevel(total, r[4]), LoopLevel(total, r[3]));
  }

  Var tap{"tap"}, o{"o"}, i{"i"}, block{"block"}, part{"part"}, item{"item"}, fold{"fold"};
  Var kx{"kx"}, ky{"ky"}, turn{"turn"};
  StripOfPlane given{"given"}, seen{"seen"};
  Func begin{"begin"}, total{"total"};
  Func of_item{"of_item"}, sum{"sum"}, folded{"folded"}, result{"result"};
  RDom r;
};

}  // namespace
}  // namespace ballast::kernels

HALIDE_REGISTER_GENERATOR(ballast::kernels::ConvWeightStrips, conv_weight_strips)
