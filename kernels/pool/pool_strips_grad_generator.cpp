// Gradients of poolings over square windows on GPUs: a work-item computes a strip of dx, some rows
// of one or two columns (kernels/recipe/strips.h). Of a maximum it finds the winners of all windows
// that reach into its strip, from rows of x that it folds along the windows' rows first.
#include "kernels/pool/pool_recipe.h"
#include "kernels/recipe/layout.h"
#include "kernels/recipe/strips.h"

namespace ballast::kernels {
namespace {

using namespace Halide;

constexpr float kLowest = -std::numeric_limits<float>::infinity();

class PoolStripsGrad : public Generator<PoolStripsGrad> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "gpu"};
  GeneratorParam<bool> is_max{"is_max", true};
  GeneratorParam<int> window{"window", 3}, stride{"stride", 1};
  GeneratorParam<int> rows{"rows", 8}, columns{"columns", 2};  // of a strip

  Input<int> top{"top"}, left{"left"}, bottom{"bottom"}, right{"right"};
  Input<int> counts_padding{"counts_padding"};  // of an average
  Input<int> out_w{"out_w"}, out_h{"out_h"};    // of a plane of windows
  Input<Buffer<float, 1>> dy{"dy"};

  void configure() {
    if (is_max) in_ = add_input<Buffer<float, 1>>("in");
    dx_ = add_output<Buffer<float, 3>>("dx");
  }

  void generate() {
    const int by = stride, size = window;
    auto& dx = *dx_;
    width = dx.dim(0).extent(), height = dx.dim(1).extent();
    const StripAxis x{columns, size, by, true, width, left}, y{rows, size, by, true, height, top};
    const Expr items = x.strips() * y.strips() * dx.dim(2).extent();
    const StripPlace place(min(i, items - 1), x.strips(), y.strips());
    // Windows are seen, and what they see begins here.
    begin(i) = {x.first_seen(place.column), y.first_seen(place.row), x.first_result(place.column),
                y.first_result(place.row), place.plane};
    const auto start = [&](const Expr& w, const Expr& v) {
      return std::make_pair((begin(i)[0] + w) * by - left, (begin(i)[1] + v) * by - top);
    };
    given.define(dy, out_w, out_h, begin(i)[0], begin(i)[1], begin(i)[4], {i});
    if (is_max) find_winners(start(0, 0).first, start(0, 0).second);

    r = RDom({{0, x.results}, {0, y.results}, {0, x.reach()}, {0, y.reach()}}, "r");
    const Expr tap_x = x.tap(r[0], r[2]), tap_y = y.tap(r[1], r[3]);
    r.where(is_tap(tap_x, size) && is_tap(tap_y, size));
    Expr added = given(r[2], r[3], {i});
    if (is_max) {
      added = select(winner(r[2], r[3], i) == tap_y * size + tap_x, added, 0.0f);
    } else {
      const auto [at_x, at_y] = start(w, v);
      const Expr count = count_along(at_x, size, width, right, counts_padding) *
                         count_along(at_y, size, height, bottom, counts_padding);
      share(w, v, i) = strict_float(given(w, v, {i}) / cast<float>(max(count, 1)));
      added = share(r[2], r[3], i);
    }
    total(s, t, i) = 0.0f;
    total(r[0], r[1], i) = strict_float(total(r[0], r[1], i) + added);
    store(items);
  }

 private:
  // The value and the tap of every window's winner: the first NaN, or the first of the largest.
  void find_winners(const Expr& x, const Expr& y) {
    const int by = stride, size = window;
    seen.define(*in_, width, height, x, y, begin(i)[4], {i}, kLowest);
    taps = RDom(1, size - 1, "taps");
    const auto winning = [](const Expr& next, const Expr& tap, const FuncRef& best) {
      const Expr wins = wins_maximum(next, best[0]);
      return Tuple(select(wins, next, best[0]), select(wins, tap, best[1]));
    };
    across(w, j, i) = Tuple(seen(w * by, j, {i}), 0);
    across(w, j, i) = winning(seen(w * by + taps, j, {i}), taps, across(w, j, i));
    best(w, v, i) = Tuple(across(w, v * by, i)[0], across(w, v * by, i)[1]);
    const FuncRef next = across(w, v * by + taps, i);
    best(w, v, i) = winning(next[0], taps * size + next[1], best(w, v, i));
    // What is padded is no smaller than -infinity, which then is the first element inside.
    const Expr first = max(-(y + v * by), 0) * size + max(-(x + w * by), 0);
    winner(w, v, i) = select(best(w, v, i)[0] == kLowest, first, best(w, v, i)[1]);
  }

  void store(const Expr& items) {
    StripResults all(columns, rows, 1, items);
    const FuncRef at = begin(all.item);
    const LoopLevel item =
        all.store(*dx_, {at[2] + all.s, at[3] + all.t, at[4]}, total(all.s, all.t, all.item));
    given.schedule(item, item);
    total.update().reorder({r[0], r[1], r[2], r[3], i});
    for (int written_out = 0; written_out < 4; ++written_out) {
      total.update().unroll(r[written_out]);
    }
    std::vector<Func> funcs = {begin, total};
    if (is_max) {
      seen.schedule(item, item);
      for (Func fold : {across, best}) {
        fold.update().reorder({taps.x, fold.args()[0], fold.args()[1], i}).unroll(taps.x);
        fold.update().unroll(fold.args()[0]).unroll(fold.args()[1]);
      }
      funcs.insert(funcs.end(), {across, best, winner});
    } else {
      funcs.push_back(share);
    }
    for (Func func : funcs) {
      func.compute_at(item).store_in(MemoryType::Stack).never_partition_all();
      func.bound_extent(i, 1);
      for (int d = 0; d + 1 < func.dimensions(); ++d) func.unroll(func.args()[d]);
    }
    set_mins(*dx_);
  }

  Var i{"i"}, s{"s"}, t{"t"}, w{"w"}, v{"v"}, j{"j"};
  Func begin{"begin"}, across{"across"}, best{"best"}, winner{"winner"}, share{"share"},
      total{"total"};
  StripOfPlane given{"given"}, seen{"seen"};
  RDom r, taps;
  Expr width, height;
  GeneratorInput<Buffer<float, 1>>* in_ = nullptr;
  GeneratorOutput<Buffer<float, 3>>* dx_ = nullptr;
};

}  // namespace
}  // namespace ballast::kernels

HALIDE_REGISTER_GENERATOR(ballast::kernels::PoolStripsGrad, pool_strips_grad)
