// What generators of depthwise y and dx declare alike. Needs Halide; stateless.
#pragma once

#include "kernels/conv/conv_recipe.h"
#include "kernels/recipe/shuffle.h"

#include <vector>

namespace ballast::kernels {

// The planes that a work-group takes, one after the other, and their windows, flipped for dx:
// (kx, ky, of...).
template <int Dimensions>
struct DepthWindows {
  using Expr = Halide::Expr;

  Halide::GeneratorInput<int> planes{"planes"}, is_flipped{"is_flipped"};
  Halide::GeneratorInput<Halide::Buffer<float, Dimensions>> weights{"weights"};

  // Of tap (kx, ky) of `side` squared.
  Expr weight(int side, const Expr& kx, const Expr& ky, const std::vector<Expr>& of) {
    std::vector<Expr> place = {flipped_if(is_flipped, kx, side), flipped_if(is_flipped, ky, side)};
    place.insert(place.end(), of.begin(), of.end());
    return weights(place);
  }
};

// Which of eight lanes is where one shuffle within halves of registers, the only one of AVX2 that
// takes lanes of two, leaves every second lane of sixteen; and the other way round.
inline int order_of_halves(int lane) {
  constexpr int kOrder[] = {0, 1, 4, 5, 2, 3, 6, 7};
  return kOrder[lane];
}
// Eight lanes from that order to that of memory, or back.
inline Halide::Expr reordered_halves(const Halide::Expr& value) {
  return take_lanes(value, value, 8, order_of_halves);
}

// Where rows of x are taken one after the other, each for all the windows that see it, which begin
// `apart` rows from each other: how many those are, of `across` rows, and of row `step` the tap row
// that it is to one of them, the `before`th before the last that begins by then. Neither window nor
// tap row need exist.
inline int windows_of_step(int across, int apart) { return (across + apart - 1) / apart; }
struct TapOfStep {
  Halide::Expr window, ky;
};
inline TapOfStep tap_of_step(const Halide::Expr& step, const Halide::Expr& before, int apart) {
  const Halide::Expr window = step / apart - before;
  return {window, step - apart * window};
}

}  // namespace ballast::kernels
