// Running sums on GPUs: a work-group takes a tile of some lines and is told what the tiles before
// it add up to. Within a tile there are sums of an item's elements, of bundles of items, and from
// both of what comes before each item. What does not belong to a sum adds a zero to it.
#include "kernels/pointwise/pointwise_recipe.h"
#include "kernels/recipe/layout.h"
#include "kernels/reduce/cumulative_tiles.h"

namespace ballast::kernels {
namespace {

using namespace Halide;
using Internal::const_false;

// in(x, r, o) along r, `lines` of x side by side. before(x, tile, o): the sums of all tiles that
// come before this one; with has_before = 0 it is not used and may be any operand.
class CumulativeTiles : public Generator<CumulativeTiles> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "gpu"};
  GeneratorParam<std::string> dtype{"dtype", "f32"};
  GeneratorParam<int> lines{"lines", 1};
  Input<Buffer<>> in{"in", 3}, before{"before", 3};
  Input<int> is_exclusive{"is_exclusive"};  // leaves out the element itself
  Input<int> is_reverse{"is_reverse"};      // begins at the end
  Input<int> has_before{"has_before"};
  Output<Buffer<>> out{"out", 3};

  void configure() {
    for (auto* buffer : {&in, &before}) buffer->set_type(storage_type(dtype_named(dtype)));
    out.set_type(storage_type(dtype_named(dtype)));
  }

  void generate() {
    const int tile_size = cumulative_tile(lines), items = tile_size / kCumulativeEach;
    const int bundle = lines == 1 ? 16 : 4;  // items: about the root of their number
    const Expr zero = Internal::make_zero(in.type()), length = in.dim(1).extent();
    const Expr line = min(x, in.dim(0).extent() - 1), at = tile * tile_size + q;
    values(x, q, tile, o) = select(at < length, in(line, min(at, length - 1), o), zero);
    of_items(x, q, tile, o) = sum_of(values, kCumulativeEach);
    of_bundles(x, q, tile, o) = sum_of(of_items, bundle);
    const Expr start = select(has_before != 0, before(line, tile * has_before, o), zero);
    starts(x, q, tile, o) =
        with_earlier(with_earlier(start, of_bundles, 0, items / bundle, q / bundle, const_false()),
                     of_items, q / bundle * bundle, bundle, q % bundle, const_false());
    const Expr of_tile = r % tile_size, item = of_tile / kCumulativeEach;
    out(x, r, o) =
        substitute({{q.name(), item}, {tile.name(), r / tile_size}},
                   with_earlier(starts(x, q, tile, o), values, q * kCumulativeEach, kCumulativeEach,
                                of_tile % kCumulativeEach, is_exclusive == 0));

    // Schedule: neighbouring items load and store neighbours.
    set_mins(in, before, out);
    const Var block("block"), step("step");
    Func(out)
        .split(x, block, x, lines, TailStrategy::GuardWithIf)
        .split(r, tile, r, tile_size, TailStrategy::GuardWithIf)
        .split(r, step, q, items, TailStrategy::GuardWithIf)
        .reorder(step, x, q, block, tile, o)
        .gpu_blocks(block, tile, o)
        .gpu_threads(x, q);
    for (const auto& [func, count] : std::vector<std::pair<Func, int>>{{values, tile_size},
                                                                       {of_items, items},
                                                                       {of_bundles, items / bundle},
                                                                       {starts, items}}) {
      Func shared = func;
      shared.compute_at(Func(out), block).store_in(MemoryType::GPUShared);
      shared.bound_extent(x, lines).bound(q, 0, count).bound_extent(tile, 1).bound_extent(o, 1);
      if (count > items) shared.split(q, step, q, items).reorder(step, x, q);
      shared.gpu_threads(x, q);
    }
  }

 private:
  // Places q of `count` of `func` each, in the order of the sums.
  Expr sum_of(const Func& func, int count) const {
    Expr sum;
    for (int k = 0; k < count; ++k) {
      const Expr next = func(x, q * count + select(is_reverse != 0, count - 1 - k, k), tile, o);
      sum = sum.defined() ? strict_float(sum + next) : next;
    }
    return sum;
  }
  // `sum` and what comes before place `at` of the `count` from `first` on; that place too, where
  // `includes_it`.
  Expr with_earlier(Expr sum, const Func& func, const Expr& first, int count, const Expr& at,
                    const Expr& includes_it) const {
    const Expr rank = select(is_reverse != 0, count - 1 - at, at);
    for (int k = 0; k < count; ++k) {
      const Expr place = first + select(is_reverse != 0, count - 1 - k, k);
      const Expr is_earlier = k < rank || (k == rank && includes_it);
      const Expr next = func(x, place, tile, o);
      sum = strict_float(sum + select(is_earlier, next, Internal::make_zero(next.type())));
    }
    return sum;
  }

  Var x{"x"}, q{"q"}, r{"r"}, tile{"tile"}, o{"o"};
  Func values{"values"}, of_items{"of_items"}, of_bundles{"of_bundles"}, starts{"starts"};
};

}  // namespace
}  // namespace ballast::kernels

HALIDE_REGISTER_GENERATOR(ballast::kernels::CumulativeTiles, cumsum_tiles)
