// Running sums along an axis: in(l, x, r, o), one element after the other along r, vectors across.
// A row is taken by one work-item, in the order in which it is defined; so sums round as numpy's
// do.
#include "kernels/pointwise/pointwise_recipe.h"

namespace ballast::kernels {
namespace {

using namespace Halide;

class CumulativeSum : public Generator<CumulativeSum> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "cpu"};
  GeneratorParam<std::string> dtype{"dtype", "f32"};
  Input<Buffer<>> in{"in", 4};
  Input<int> is_exclusive{"is_exclusive"};  // leaves out the element itself
  Input<int> is_reverse{"is_reverse"};      // begins at the end
  Output<Buffer<>> out{"out", 4};

  void configure() {
    in.set_type(storage_type(dtype_named(dtype)));
    out.set_type(storage_type(dtype_named(dtype)));
  }

  void generate() {
    const Expr length = in.dim(2).extent(), zero = Internal::make_zero(in.type());
    steps_ = RDom(0, length, "steps");
    out(l, x, r, o) = undef(in.type());
    const auto at = [&](const Expr& step) {
      return select(is_reverse != 0, length - 1 - step, step);
    };
    const Expr before = max(steps_ - 1, 0), added = select(is_exclusive != 0, before, steps_);
    const Expr sum = select(steps_ == 0, zero, out(l, x, at(before), o));
    const Expr value = select(is_exclusive != 0 && steps_ == 0, zero, in(l, x, at(added), o));
    out(l, x, at(steps_), o) = strict_float(sum + value);
  }

  void schedule() {
    for (int d = 0; d < 4; ++d) {
      in.dim(d).set_min(0);
      out.dim(d).set_min(0);
    }
    Stage update = Func(out).update();
    if (device_class.value() == "gpu") {
      constexpr int kItems = 64;
      const Var block("block"), item("item");
      Func(out).bound(l, 0, 1);
      update.split(x, block, item, kItems, TailStrategy::GuardWithIf)
          .reorder(l, steps_, item, block, o)
          .gpu_blocks(block, o)
          .gpu_threads(item);
      return;
    }
    update.reorder(l, steps_, x, o).gpu_blocks(x, o);
    update.specialize(out.dim(0).extent() == kLanes).vectorize(l, kLanes);
  }

 private:
  Var l{"l"}, x{"x"}, r{"r"}, o{"o"};
  RDom steps_;
};

}  // namespace
}  // namespace ballast::kernels

HALIDE_REGISTER_GENERATOR(ballast::kernels::CumulativeSum, cumsum)
