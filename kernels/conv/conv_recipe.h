// What the generators of convolutions share. Needs Halide; stateless.
#pragma once

#include "kernels/pointwise/pointwise_math.h"
#include "kernels/recipe/fma.h"
#include "kernels/recipe/lanes.h"
#include "kernels/recipe/layout.h"

#include <Halide.h>

#include <vector>

namespace ballast::kernels {

// Where a kernel is y as well as dx, which takes the window's taps backwards: `tap` of so many.
inline Halide::Expr flipped_if(const Halide::Expr& is_flipped, const Halide::Expr& tap,
                               const Halide::Expr& taps) {
  return select(is_flipped != 0, taps - 1 - tap, tap);
}

// What a kernel with an epilogue declares for it (Halide finds the inputs of a generator by where
// they lie in it): relu(scale (sum + bias) + shift + residual), of which it has what the flags say.
// `Place` dimensions tell a result's place, `Channel` its channel. Each step is rounded.
template <int Channel, int Place>
struct EpilogueInputs {
  using Expr = Halide::Expr;
  using OfChannel = Halide::GeneratorInput<Halide::Buffer<float, Channel>>;

  OfChannel bias{"bias"}, scale{"scale"}, shift{"shift"};
  Halide::GeneratorInput<Halide::Buffer<float, Place>> residual{"residual"};
  Halide::GeneratorInput<int> has_bias{"has_bias"}, has_scale{"has_scale"},
      has_residual{"has_residual"}, has_relu{"has_relu"};

  // Whether the sums are the results.
  Expr is_plain() const {
    return has_residual == 0 && has_bias == 0 && has_scale == 0 && has_relu == 0;
  }

  Expr with_terms(const Expr& sum, const std::vector<Expr>& channel,
                  const std::vector<Expr>& place) {
    using Halide::strict_float;
    Expr value = select(has_bias != 0, strict_float(sum + bias(channel)), sum);
    value = select(has_scale != 0,
                   strict_float(strict_float(value * scale(channel)) + shift(channel)), value);
    return select(has_residual != 0, strict_float(value + residual(place)), value);
  }

  Expr with_relu(const Expr& value) const {
    return select(has_relu != 0 && le(value, 0.0f), 0.0f, value);
  }

  // Schedules `stage`, which stores the results, with kernels of their own for sums as they are,
  // and for what reads no residual.
  template <class Schedule>
  void specialize(Halide::Stage stage, const Schedule& schedule) const {
    schedule(stage.specialize(is_plain()));
    schedule(stage.specialize(has_residual == 0));
    schedule(stage);
  }

  void set_layouts() {
    set_any_layout(bias, scale, shift);
    set_mins(residual);
  }
};

// Sums of one lane, a value per tap, with those of another: what a LaneFold of them does.
inline std::vector<Halide::Expr> add_by_tap(const std::vector<Halide::Expr>& a,
                                            const std::vector<Halide::Expr>& b) {
  std::vector<Halide::Expr> both;
  for (size_t tap = 0; tap < a.size(); ++tap) {
    both.push_back(Halide::strict_float(a[tap] + b[tap]));
  }
  return both;
}

// A weight gradient's dy(lane, vector, pixel, panel), or sums(lane, vector, tap, ...), in panels of
// `vectors` vectors of output channels; a generator's tensor.
template <class Tensor>
void set_panel_layout(Tensor& tensor, int vectors) {
  tensor.dim(0).set_bounds(0, kLanes).set_stride(1);
  tensor.dim(1).set_bounds(0, vectors).set_stride(kLanes);
  tensor.dim(2).set_min(0).set_stride(kLanes * vectors);
  for (int d = 3; d < tensor.dimensions(); ++d) tensor.dim(d).set_min(0);
}

}  // namespace ballast::kernels
