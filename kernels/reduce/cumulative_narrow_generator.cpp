// Running sums of rows that are shorter than a vector, sixteen of them in its lanes.
#include "kernels/pointwise/pointwise_recipe.h"
#include "kernels/reduce/axis_generator.h"

namespace ballast::kernels {
namespace {

using namespace Halide;

// The order of additions is that of cumulative_generator.cpp.
class CumulativeNarrowRows : public AxisGenerator<CumulativeNarrowRows> {
 public:
  GeneratorParam<std::string> dtype{"dtype", "f32"};
  Input<Buffer<>> in{"in"};
  Input<int> is_exclusive{"is_exclusive"}, is_reverse{"is_reverse"};
  Input<int> rows_per_group{"rows_per_group"};
  Output<Buffer<>> out{"out"};

  void configure() {
    in.set_type(storage_type(dtype_named(dtype)));
    out.set_type(storage_type(dtype_named(dtype)));
    set_tensors({&in}, {&out});
  }

  void generate() {
    const AxisNest nest = make_nest();
    const Func x = read(in, nest);
    const auto ordered = [&](const Expr& step) {
      return select(is_reverse != 0, nest.length - 1 - step, step);
    };
    // Of the first `step` elements.
    const Var step("step");
    Func total("total");
    total(nest.i, step, nest.o) = Internal::make_zero(in.type());
    RDom steps(0, nest.length, "steps");
    total(nest.i, steps + 1, nest.o) =
        strict_float(total(nest.i, steps, nest.o) + x(nest.i, ordered(steps), nest.o));
    const Expr count = ordered(nest.r) + select(is_exclusive != 0, 0, 1);
    AxisSchedule schedule = write(
        out, nest, total(nest.i, unsafe_promise_clamped(count, 0, kLanes), nest.o), rows_per_group);
    schedule.keep(total);
    total.bound(step, 0, kLanes + 1).update().vectorize(nest.i);
  }
};

}  // namespace
}  // namespace ballast::kernels

HALIDE_REGISTER_GENERATOR(ballast::kernels::CumulativeNarrowRows, cumsum_narrow_rows)
