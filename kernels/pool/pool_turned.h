// Whole planes with 16 of them in the lanes, as the poolings of small planes see them. Needs
// Halide.
#pragma once

#include "kernels/pool/pool_limits.h"
#include "kernels/recipe/turned_pixels.h"

#include <Halide.h>

namespace ballast::kernels {

// A pixel, or a window, of such a plane.
inline Halide::Expr pool_place(const Halide::Expr& number) {
  return Halide::unsafe_promise_clamped(number, 0, kPoolPlaces - 1);
}

// at(lane, pixel, v) of planes(pixel, plane, 1, 1) on a work-group's stack; lanes beyond the last
// plane repeat it. Planes of a vector of pixels and more are transposed in registers
// (turned_pixels.h), of fewer each element is fetched.
class TurnedPlanes {
 public:
  using Expr = Halide::Expr;
  using Var = Halide::Var;

  explicit TurnedPlanes(const std::string& name) : x_(name), fetched_("fetched_" + name) {}

  template <class Planes>
  void define(Planes& planes, const Var& v, bool are_few) {
    are_few_ = are_few;
    const Expr all = planes.dim(0).extent(), last = planes.dim(1).extent() - 1;
    const auto plane = [=](const Expr& lane) { return min(v * kLanes + lane, last); };
    if (are_few) {
      pixels_ = Halide::RDom(0, all, "pixels_of_" + fetched_.name());
      fetched_(l_, q_, v) = Halide::undef<float>();
      fetched_(l_, pool_place(pixels_.x), v) = planes(pixels_.x, plane(l_), 0, 0);
      return;
    }
    x_.define({planes, all, 0, plane}, (all + kLanes - 1) / kLanes, 1, kPoolPlaces,
              [=](const Expr&) {
                return TurnedPixels::Run{0, 0, all, all - kLanes,
                                         [](const Expr& pixel) { return pixel; }};
              },
              {v});
  }

  Expr at(const Expr& lane, const Expr& pixel, const Expr& v) {
    return are_few_ ? fetched_(lane, pixel, v) : x_.turned(lane, 0, pixel, v);
  }

  // `v`: the variable of define().
  void schedule(const Halide::LoopLevel& level, const Var& v) {
    if (!are_few_) return x_.schedule(level, 1);
    fetched_.compute_at(level).store_in(Halide::MemoryType::Stack).never_partition_all();
    fetched_.bound_extent(l_, kLanes).bound_extent(v, 1).bound_storage(q_, kPoolPlaces);
    fetched_.update().vectorize(l_).never_partition_all();
  }

 private:
  bool are_few_ = false;
  TurnedPixels x_;
  Var l_{"fetched_l"}, q_{"fetched_q"};
  Halide::Func fetched_;
  Halide::RDom pixels_;
};

}  // namespace ballast::kernels
