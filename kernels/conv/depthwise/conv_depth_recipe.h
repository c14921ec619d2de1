// What generators of depthwise y and dx declare alike. Needs Halide; stateless.
#pragma once

#include "kernels/conv/conv_recipe.h"

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

}  // namespace ballast::kernels
