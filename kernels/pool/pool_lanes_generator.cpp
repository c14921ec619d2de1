// Poolings of small planes without padding on CPUs, and their gradients: 16 planes are the lanes.
// A work-group turns their pixels (turned_pixels.h) and keeps its results' likewise, so that a tap
// is a distance; results are turned back, 16 pixels at a time, in registers.
//
// A gradient finds the windows' winners first; then each tap adds to its pixel what those windows
// give whose winner it is.
#include "kernels/pointwise/pointwise_math.h"
#include "kernels/pool/pool_recipe.h"
#include "kernels/pool/pool_turned.h"
#include "kernels/recipe/layout.h"

#include <limits>
#include <string>
#include <vector>

namespace ballast::kernels {
namespace {

using namespace Halide;

class PoolLanes : public Generator<PoolLanes> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "cpu"};
  GeneratorParam<bool> is_max{"is_max", true};
  GeneratorParam<bool> is_grad{"is_grad", false};

  Input<int> kernel_h{"kernel_h"}, kernel_w{"kernel_w"}, stride_h{"stride_h"}, stride_w{"stride_w"},
      dilation_h{"dilation_h"}, dilation_w{"dilation_w"};
  Input<int> in_width{"in_width"}, width{"width"}, height{"height"};  // of x; of windows
  Input<float> share{"share"};                                        // of a mean

  // Planes are (pixel, plane, 1, 1).
  void configure() {
    if (is_grad) dy_ = add_input<Buffer<float>>("dy", 4);
    if (is_max || !is_grad) in_ = add_input<Buffer<float>>("in", 4);
    out_ = add_output<Buffer<float>>("out", 2);
  }

  void generate() {
    windows = RDom(0, width, 0, height, "windows");
    origin(f) = undef<int>();
    origin(pool_place(windows.y * width + windows.x)) =
        windows.y * stride_h * in_width + windows.x * stride_w;
    taps = RDom({{0, width * height}, {0, kernel_w}, {0, kernel_h}}, "taps");
    if (in_ != nullptr) turn_planes(x, *in_, v);
    if (is_grad) {
      turn_planes(given, *dy_, v);
      if (is_max) find_winners();
      give();
    } else {
      fold();
    }
    turn_back();
  }

  void schedule() {
    if (in_ != nullptr) set_mins(*in_);
    if (dy_ != nullptr) set_mins(*dy_);
    set_mins(*out_);
    back.schedule(*out_, Func(*out_).update());
    const LoopLevel group(*out_, back.vector_of_planes());
    if (in_ != nullptr) x.schedule(group, 1);
    if (is_grad) given.schedule(group, 1);
    origin.compute_at(group).store_in(MemoryType::Stack).bound_storage(f, kPoolPlaces);
    origin.never_partition_all();
    origin.update().never_partition_all();
    if (is_grad && is_max) keep(winner, group);
    keep(result, group);
  }

 private:
  Expr pixels() { return out_->dim(0).extent(); }

  // Of the windows' taps: a window, and its pixel.
  Expr window() { return pool_place(taps[0]); }
  Expr pixel() {
    return pool_place(origin(window()) + taps[2] * dilation_h * in_width + taps[1] * dilation_w);
  }
  void fold() {
    result(l, q, v) = is_max ? -std::numeric_limits<float>::infinity() : 0.0f;
    const Expr value = result(l, window(), v), next = x.turned(l, 0, pixel(), v);
    result(l, window(), v) =
        is_max ? select(wins_maximum(next, value), next, value) : strict_float(value + next);
  }

  // The largest element and its pixel; at first the first one's, which may be -infinity.
  void find_winners() {
    winner(l, q, v) = Tuple(-std::numeric_limits<float>::infinity(), origin(pool_place(q)));
    const FuncRef before = winner(l, window(), v);
    const Expr next = x.turned(l, 0, pixel(), v), is_next = wins_maximum(next, before[0]);
    winner(l, window(), v) =
        Tuple(select(is_next, next, before[0]), select(is_next, pixel(), before[1]));
  }

  void give() {
    result(l, q, v) = 0.0f;
    const Expr value = result(l, pixel(), v), more = given.turned(l, 0, window(), v);
    if (!is_max) {
      result(l, pixel(), v) = strict_float(value + strict_float(more * share));
      return;
    }
    result(l, pixel(), v) =
        select(winner(l, window(), v)[1] == pixel(), strict_float(value + more), value);
  }

  void turn_back() {
    back.define(kLanes, pixels(), out_->dim(1).extent(), {},
                [&](const Expr& l, const Expr& pixel, const Expr& v) {
                  const Expr value = result(l, pool_place(pixel), v);
                  return is_max || is_grad ? value : strict_float(value * share);
                });
    (*out_)(f, p) = undef<float>();
    (*out_)(back.pixel(), back.plane()) = back.value();
  }

  // On the stack, by pixels or windows.
  void keep(Func func, const LoopLevel& group) {
    func.compute_at(group).store_in(MemoryType::Stack).vectorize(l).never_partition_all();
    func.bound_extent(l, kLanes).bound_extent(v, 1).bound_storage(q, kPoolPlaces);
    func.update().reorder({l, taps[0], taps[1], taps[2], v}).vectorize(l).never_partition_all();
  }

  Var l{"l"}, f{"f"}, p{"p"}, q{"q"}, v{"v"};
  TurnedPixels x{"x"}, given{"dy"};
  Func origin{"origin"}, winner{"winner"}, result{"result"};
  TurnedBack back;
  GeneratorInput<Buffer<float>>*dy_ = nullptr, *in_ = nullptr;
  GeneratorOutput<Buffer<float>>* out_ = nullptr;
  RDom windows, taps;
};

}  // namespace
}  // namespace ballast::kernels

HALIDE_REGISTER_GENERATOR(ballast::kernels::PoolLanes, pool_lanes)
