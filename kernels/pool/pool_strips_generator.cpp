// Maxima over square windows on GPUs: a work-item computes a strip, some rows of a column, of rows
// of x that it folds along the windows' rows first (kernels/recipe/strips.h).
#include "kernels/pool/pool_recipe.h"
#include "kernels/recipe/layout.h"
#include "kernels/recipe/strips.h"

namespace ballast::kernels {
namespace {

using namespace Halide;

class PoolStrips : public Generator<PoolStrips> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "gpu"};
  GeneratorParam<int> window{"window", 3}, stride{"stride", 1};
  GeneratorParam<int> rows{"rows", 8};  // of a strip

  Input<int> top{"top"}, left{"left"};
  Input<int> width{"width"}, height{"height"};  // of a plane of x
  Input<Buffer<float, 1>> in{"in"};
  Output<Buffer<float, 3>> out{"out"};

  void generate() {
    const StripAxis x{1, window, stride, false, out.dim(0).extent(), left},
        y{rows, window, stride, false, out.dim(1).extent(), top};
    const Expr items = x.strips() * y.strips() * out.dim(2).extent();
    const StripPlace place(min(i, items - 1), x.strips(), y.strips());
    begin(i) = {x.first_seen(place.column), y.first_seen(place.row), x.first_result(place.column),
                y.first_result(place.row), place.plane};
    seen.define(in, width, height, begin(i)[0], begin(i)[1], begin(i)[4], {i},
                -std::numeric_limits<float>::infinity());
    const RDom taps(1, window - 1, "taps");
    const auto larger = [](const Expr& next, const Expr& value) {
      return select(wins_maximum(next, value), next, value);
    };
    const int by = stride;
    across(j, i) = seen(0, j, {i});
    across(j, i) = larger(seen(taps, j, {i}), across(j, i));
    best(t, i) = across(t * by, i);
    best(t, i) = larger(across(t * by + taps, i), best(t, i));

    StripResults all(1, rows, 1, items);
    const FuncRef at = begin(all.item);
    const LoopLevel item = all.store(out, {at[2], at[3] + all.t, at[4]}, best(all.t, all.item));
    begin.compute_at(item).store_in(MemoryType::Stack).bound_extent(i, 1);
    seen.schedule(item, item);
    for (Func func : {across, best}) {
      func.compute_at(item).store_in(MemoryType::Stack).bound_extent(i, 1);
      func.update().reorder({taps.x, func.args()[0], i}).unroll(taps.x).unroll(func.args()[0]);
      func.unroll(func.args()[0]).never_partition_all();
    }
    set_mins(out);
  }

 private:
  Var i{"i"}, j{"j"}, t{"t"};
  Func begin{"begin"}, across{"across"}, best{"best"};
  StripOfPlane seen{"seen"};
};

}  // namespace
}  // namespace ballast::kernels

HALIDE_REGISTER_GENERATOR(ballast::kernels::PoolStrips, pool_strips)
