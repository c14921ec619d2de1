// Poolings of small planes on CPUs, and their gradients: 16 planes are the lanes. A work-group
// turns their pixels (pool_turned.h) and keeps its results' likewise, so that a tap is a distance
// and padding a tap that is left out, for all lanes alike; results are turned back.
//
// A gradient finds the windows' winners first; then each tap adds to its pixel what a window whose
// winner it is gives.
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

class PoolLanes : public AveragingGenerator<PoolLanes> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "cpu"};
  GeneratorParam<bool> is_max{"is_max", true};
  GeneratorParam<bool> is_grad{"is_grad", false};
  // Whether a plane of x, or of windows, is less than a vector.
  GeneratorParam<bool> has_few_pixels{"has_few_pixels", false};
  GeneratorParam<bool> has_few_windows{"has_few_windows", false};

  Input<int> kernel_h{"kernel_h"}, kernel_w{"kernel_w"}, stride_h{"stride_h"}, stride_w{"stride_w"},
      dilation_h{"dilation_h"}, dilation_w{"dilation_w"}, top{"top"}, left{"left"};
  Input<int> in_width{"in_width"}, in_height{"in_height"};  // of x
  Input<int> width{"width"}, height{"height"};              // of windows

  // Planes are (pixel, plane, 1, 1).
  void configure() {
    if (!is_max) add_counts();
    if (is_grad) dy_ = add_input<Buffer<float>>("dy", 4);
    if (is_max || !is_grad) in_ = add_input<Buffer<float>>("in", 4);
    out_ = add_output<Buffer<float>>("out", 2);
  }

  void generate() {
    windows = RDom(0, width, 0, height, "windows");
    if (in_ != nullptr) x.define(*in_, v, has_few_pixels);
    if (is_grad) {
      given.define(*dy_, v, has_few_windows);
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
    Stage stage = Func(*out_).update();
    if (is_few()) {
      stage.allow_race_conditions().gpu_blocks(part.z).never_partition_all();
    } else {
      back.schedule(*out_, stage);
    }
    const LoopLevel group(*out_, is_few() ? part.z : back.vector_of_planes());
    if (in_ != nullptr) x.schedule(group, v);
    if (is_grad) given.schedule(group, v);
    if (is_grad && !is_max) keep(shares, group, 0);
    if (is_grad && is_max) keep(winners, group, 0), hold(seen, winners);
    keep(result, group, is_grad ? 1 : 0);
    if (is_grad) {
      result.update(1).reorder({l, taps[0], taps[1], taps[2], taps[3], v});
    } else {
      hold(seen, result);
    }
    if (is_max && is_grad) {
      for (Func first : {first_column, first_row}) {
        first.compute_at(group).store_in(MemoryType::Stack).bound_storage(f, kPoolPlaces);
        first.never_partition_all();
        first.update().never_partition_all();
      }
    }
  }

 private:
  bool is_few() const { return is_grad ? has_few_pixels : has_few_windows; }

  // The taps of a window (x, y) that are elements of x, a domain that is to be limited to these.
  struct Tap {
    Expr column, row;
    Expr pixel(const Expr& pitch) const { return pool_place(row * pitch + column); }
  };
  Tap tap_of(const Expr& x, const Expr& y, const Expr& tap_x, const Expr& tap_y) {
    return {x * stride_w - left + tap_x * dilation_w, y * stride_h - top + tap_y * dilation_h};
  }
  void limit(RDom& domain, const Tap& tap) {
    domain.where(tap.column >= 0 && tap.column < in_width && tap.row >= 0 && tap.row < in_height);
  }
  Expr window(const Expr& x, const Expr& y) { return pool_place(y * width + x); }
  Expr window() { return window(windows.x, windows.y); }

  // seen(l, a, b, v), in registers: what window (a, b) sees, from `start` on.
  template <class Step>
  void see(const Tuple& start, const Step& step) {
    RDom of_window(0, kernel_w, 0, kernel_h, "of_window");
    const Tap tap = tap_of(a, b, of_window.x, of_window.y);
    limit(of_window, tap);
    seen(l, a, b, v) = start;
    const Expr pixel = tap.pixel(in_width);
    seen(l, a, b, v) = step(seen(l, a, b, v), x.at(l, pixel, v), pixel);
  }

  Expr mean(const Expr& total, const Expr& x, const Expr& y) {
    return average(total, x * stride_w - left, y * stride_h - top, kernel_w, kernel_h, in_width,
                   in_height);
  }

  void fold() {
    const float none = is_max ? -std::numeric_limits<float>::infinity() : 0.0f;
    see(Tuple(Expr(none)), [&](const FuncRef& value, const Expr& next, Expr) {
      const Expr so_far = value;
      return Tuple(is_max ? select(wins_maximum(next, so_far), next, so_far)
                          : strict_float(so_far + next));
    });
    const Expr all = seen(l, windows.x, windows.y, v);
    result(l, q, v) = undef<float>();
    result(l, window(), v) = is_max ? all : mean(all, windows.x, windows.y);
  }

  // The largest element's pixel; at first the first one's, which may be -infinity.
  void find_winners() {
    first_of(first_column, width, stride_w, left, dilation_w);
    first_of(first_row, height, stride_h, top, dilation_h);
    const Expr first = first_row(pool_place(b)) * in_width + first_column(pool_place(a));
    see(Tuple(-std::numeric_limits<float>::infinity(), first),
        [](const FuncRef& value, const Expr& next, const Expr& pixel) {
          const Expr is_next = wins_maximum(next, value[0]);
          return Tuple(select(is_next, next, value[0]), select(is_next, pixel, value[1]));
        });
    winners(l, q, v) = undef<int>();
    winners(l, window(), v) = seen(l, windows.x, windows.y, v)[1];
  }

  // Where the first tap lies that is not padding before x.
  void first_of(Func first, const Expr& all, const Expr& stride, const Expr& before,
                const Expr& dilation) {
    const RDom r(0, all, first.name() + "_of");
    const Expr start = r.x * stride - before;
    first(f) = undef<int>();
    first(pool_place(r.x)) = start + max((dilation - 1 - start) / dilation, 0) * dilation;
  }

  void give() {
    const Expr pixels = in_width * in_height;
    const RDom all(0, pixels, "all");
    taps = RDom({{0, kernel_w}, {0, kernel_h}, {0, width}, {0, height}}, "taps");
    const Tap tap = tap_of(taps[2], taps[3], taps[0], taps[1]);
    limit(taps, tap);
    const Expr pixel = tap.pixel(in_width), from = window(taps[2], taps[3]);
    result(l, q, v) = undef<float>();
    result(l, pool_place(all.x), v) = 0.0f;
    const Expr value = result(l, pixel, v);
    if (is_max) {
      result(l, pixel, v) =
          select(winners(l, from, v) == pixel, strict_float(value + given.at(l, from, v)), value);
      return;
    }
    shares(l, q, v) = undef<float>();
    shares(l, window(), v) = mean(given.at(l, window(), v), windows.x, windows.y);
    result(l, pixel, v) = strict_float(value + shares(l, from, v));
  }

  void turn_back() {
    (*out_)(f, p) = undef<float>();
    const Expr planes = out_->dim(1).extent();
    if (is_few()) {
      part = RDom({{0, out_->dim(0).extent()}, {0, kLanes}, {0, (planes + kLanes - 1) / kLanes}},
                  "part");
      part.where(part.z * kLanes + part.y < planes);
      (*out_)(part.x, part.z * kLanes + part.y) = result(part.y, pool_place(part.x), part.z);
      return;
    }
    back.define(kLanes, out_->dim(0).extent(), planes, {},
                [&](const Expr& l, const Expr& pixel, const Expr& v) {
                  return result(l, pool_place(pixel), v);
                });
    (*out_)(back.pixel(), back.plane()) = back.value();
  }

  // On the stack, by pixels or windows.
  void keep(Func func, const LoopLevel& group, int last_update) {
    func.compute_at(group).store_in(MemoryType::Stack).never_partition_all();
    func.bound_extent(l, kLanes).bound_extent(v, 1).bound_storage(q, kPoolPlaces);
    for (int i = 0; i <= last_update; ++i) func.update(i).vectorize(l).never_partition_all();
  }

  // In registers, of one window of `result`.
  void hold(Func values, Func of) {
    of.update(0).reorder({l, windows.x, windows.y, v});
    values.compute_at(of, windows.x).store_in(MemoryType::Register).vectorize(l);
    values.bound_extent(l, kLanes).bound_extent(v, 1).bound_extent(a, 1).bound_extent(b, 1);
    values.never_partition_all();
    values.update().vectorize(l).never_partition_all();
  }

  Var l{"l"}, f{"f"}, p{"p"}, q{"q"}, v{"v"}, a{"a"}, b{"b"};
  TurnedPlanes x{"x"}, given{"dy"};
  Func first_column{"first_column"}, first_row{"first_row"}, seen{"seen"}, winners{"winners"},
      shares{"shares"}, result{"result"};
  TurnedBack back;
  GeneratorInput<Buffer<float>>*dy_ = nullptr, *in_ = nullptr;
  GeneratorOutput<Buffer<float>>* out_ = nullptr;
  RDom windows, taps, part;
};

}  // namespace
}  // namespace ballast::kernels

HALIDE_REGISTER_GENERATOR(ballast::kernels::PoolLanes, pool_lanes)
