// The largest elements of any windows of small planes on CPUs: 16 planes are the lanes, so that
// windows may lie as they like and leave no lane empty. A work-group turns their pixels
// (turned_pixels.h), surrounds them with what is padded, folds the rows of windows, then their
// columns, and turns results back: a window takes as many steps as it has rows and columns, an
// instruction each, as elements are compared as integers.
#include "kernels/pool/pool_recipe.h"
#include "kernels/pool/pool_turned.h"
#include "kernels/recipe/layout.h"

#include <array>
#include <limits>
#include <vector>

namespace ballast::kernels {
namespace {

using namespace Halide;

constexpr int kLeastKey = int(0xff800000u) ^ 0x7fffffff;  // of -infinity

// As ordered_key, but both zeros keep their signs; the way back, NaN is one.
Expr key_of(const Expr& value) {
  return select(eq(value, value), in_order(reinterpret<int>(value)),
                std::numeric_limits<int>::max());
}
Expr value_of(const Expr& key) { return reinterpret<float>(in_order(key)); }

class PoolLanesMax : public Generator<PoolLanesMax> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "cpu"};

  Input<int> kernel_h{"kernel_h"}, kernel_w{"kernel_w"}, stride_h{"stride_h"}, stride_w{"stride_w"},
      dilation_h{"dilation_h"}, dilation_w{"dilation_w"};
  Input<int> in_width{"in_width"}, width{"width"}, height{"height"};  // of x; of windows
  Input<int> in_height{"in_height"}, top{"top"}, left{"left"};
  Input<int> pitch{"pitch"}, padded_height{"padded_height"};  // of x with what is padded
  Input<Buffer<float, 4>> in{"in"};                           // (pixel, plane, 1, 1)
  Output<Buffer<float, 2>> out{"out"};                        // (window, plane)

  void generate() {
    x.define(in, v, false);
    around = RDom(0, pitch * padded_height, "around");
    inside = RDom(0, in_width, 0, in_height, "inside");
    padded(l, q, v) = undef<int>();
    padded(l, pool_place(around.x), v) = kLeastKey;
    padded(l, pool_place((inside.y + top) * pitch + inside.x + left), v) =
        key_of(x.at(l, pool_place(inside.y * in_width + inside.x), v));
    columns = fold(
        down, folded_rows, padded, {pitch, height},
        [this](const Expr& x, const Expr& y) { return y * stride_h * pitch + x; },
        dilation_h * pitch, kernel_h);
    windows = fold(
        across, folded_columns, down, {width, height},
        [this](const Expr& x, const Expr& y) { return y * pitch + x * stride_w; }, dilation_w,
        kernel_w);
    back.define(kLanes, out.dim(0).extent(), out.dim(1).extent(), {},
                [&](const Expr& l, const Expr& window, const Expr& v) {
                  return value_of(across(l, pool_place(window), v));
                });
    out(f, p) = undef<float>();
    out(back.pixel(), back.plane()) = back.value();
  }

  void schedule() {
    set_mins(in, out);
    back.schedule(out, Func(out).update());
    const LoopLevel group(out, back.vector_of_planes());
    x.schedule(group, v);
    for (Func func : {padded, down, across}) {
      func.compute_at(group).store_in(MemoryType::Stack).never_partition_all();
      func.bound_extent(l, kLanes).bound_extent(v, 1).bound_storage(q, kPoolPlaces);
    }
    padded.update(0).reorder({l, around.x, v}).vectorize(l).never_partition_all();
    padded.update(1).reorder({l, inside.x, inside.y, v}).vectorize(l).never_partition_all();
    down.update().reorder({l, columns.x, columns.y, v}).vectorize(l).never_partition_all();
    across.update().reorder({l, windows.x, windows.y, v}).vectorize(l).never_partition_all();
    hold(folded_rows, down, columns.x);
    hold(folded_columns, across, windows.x);
  }

 private:
  // result(l, place, v): the largest of `steps` of `given` from `first(x, y)` on, so far apart, for
  // the places of a plane of such `extents`.
  template <class First>
  RDom fold(Func result, Func largest, Func given, const std::array<Expr, 2>& extents,
            const First& first, const Expr& distance, const Expr& steps) {
    const RDom r(0, extents[0], 0, extents[1], "of_" + result.name());
    const RDom step(0, steps, "step_of_" + result.name());
    largest(l, a, b, v) = kLeastKey;
    largest(l, a, b, v) =
        max(largest(l, a, b, v), given(l, pool_place(first(a, b) + step * distance), v));
    result(l, q, v) = undef<int>();
    result(l, pool_place(r.y * extents[0] + r.x), v) = largest(l, r.x, r.y, v);
    return r;
  }

  void hold(Func largest, Func result, const RVar& loop) {
    largest.compute_at(result, loop).store_in(MemoryType::Register).vectorize(l);
    largest.bound_extent(l, kLanes).bound_extent(v, 1).bound_extent(a, 1).bound_extent(b, 1);
    largest.update().vectorize(l).never_partition_all();
  }

  Var l{"l"}, f{"f"}, p{"p"}, q{"q"}, v{"v"}, a{"a"}, b{"b"};
  TurnedPlanes x{"x"};
  Func padded{"padded"}, folded_rows{"folded_rows"}, down{"down"}, folded_columns{"folded_columns"},
      across{"across"};
  TurnedBack back;
  RDom around, inside, columns, windows;
};

}  // namespace
}  // namespace ballast::kernels

HALIDE_REGISTER_GENERATOR(ballast::kernels::PoolLanesMax, pool_lanes_max)
