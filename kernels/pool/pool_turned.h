// Whole planes with 16 of them in the lanes, as the poolings of small planes see them. Needs
// Halide.
#pragma once

#include "kernels/pool/pool_limits.h"
#include "kernels/recipe/turned_pixels.h"

namespace ballast::kernels {

// A pixel, or a window, of such a plane.
inline Halide::Expr pool_place(const Halide::Expr& number) {
  return Halide::unsafe_promise_clamped(number, 0, kPoolPlaces - 1);
}

// turned(lane, 0, pixel, v) of planes(pixel, plane, 1, 1); lanes beyond the last plane repeat it.
template <class Planes>
void turn_planes(TurnedPixels& turned, Planes& planes, const Halide::Var& v) {
  using Halide::Expr;
  const Expr all = planes.dim(0).extent(), last = planes.dim(1).extent() - 1;
  turned.define(
      {planes, all, 0, [=](const Expr& lane) { return min(v * kLanes + lane, last); }},
      (all + kLanes - 1) / kLanes, 1, kPoolPlaces,
      [=](const Expr&) {
        return TurnedPixels::Run{0, 0, all, all - kLanes, [](const Expr& pixel) { return pixel; }};
      },
      {v});
}

}  // namespace ballast::kernels
