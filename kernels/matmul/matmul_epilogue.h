// What follows the accumulation in every matmul kernel, as stages that work in place on a tile of
// finished sums: bias, activation, then the operand of C's shape (a residual, or relu_grad's y).
//
// Numbers choose the epilogue at run time, outside the loop over k: one kernel serves all of them,
// so that a program is compiled per tile and not per tile and epilogue. A stage that is not wanted
// is a loop of no steps. The expressions are the pointwise ops', so that fused equals unfused bit
// for bit.
#pragma once

#include "kernels/matmul/matmul_activations.h"
#include "kernels/pointwise/pointwise_math.h"
#include "kernels/pointwise/pointwise_recipe.h"

#include <Halide.h>

#include <vector>

namespace ballast::kernels {

// A tile is tile[lane][vector][row][...], on the stack; the trailing coordinates say which one.
class MatmulEpilogue {
 public:
  MatmulEpilogue(Halide::Func tile, int vectors, int rows, std::vector<Halide::Var> which)
      : tile_(std::move(tile)), vectors_(vectors), rows_(rows), which_(std::move(which)) {}

  // bias(lane, vector, row) where `has_bias`.
  template <class Bias>
  void add_bias(const Halide::Expr& has_bias, const Bias& bias) {
    const Halide::RDom r = steps(has_bias, "bias");
    at(lane_, r.x, r.y) = at(lane_, r.x, r.y) + bias(lane_, r.x, r.y);
    vectorize_last();
  }

  void add_activations(const Halide::Expr& activation) {
    for (int i = 1; i < kActivationCount; ++i) {
      const Halide::RDom r = steps(activation == i, kActivations[i]);
      at(lane_, r.x, r.y) = apply_pointwise(kActivations[i], DType::kF32, {at(lane_, r.x, r.y)});
      vectorize_last();
    }
  }

  // extra(lane, vector, row), whole vectors of it or one by one.
  template <class Extra>
  void add_extra(const Halide::Expr& mode, bool is_dense, const Extra& extra) {
    const Halide::RDom r = steps(mode != 0, "extra");
    at(lane_, r.x, r.y) = with_extra(mode, at(lane_, r.x, r.y), extra(lane_, r.x, r.y));
    if (is_dense)
      vectorize_last();
    else
      tile_.update(tile_.num_update_definitions() - 1).unscheduled();
  }

  // What `extra` makes of `value`, where there is one.
  static Halide::Expr with_extra(const Halide::Expr& mode, const Halide::Expr& value,
                                 const Halide::Expr& extra) {
    return select(mode == static_cast<int>(MatmulExtra::kResidual),
                  apply_pointwise("add", DType::kF32, {value, extra}),
                  apply_pointwise("relu_grad", DType::kF32, {value, extra}));
  }

 private:
  Halide::RDom steps(const Halide::Expr& condition, const std::string& name) const {
    return Halide::RDom({{0, vectors_}, {0, select(condition, rows_, 0)}}, name);
  }

  Halide::FuncRef at(const Halide::Expr& lane, const Halide::Expr& vector,
                     const Halide::Expr& row) const {
    std::vector<Halide::Expr> coordinates = {lane, vector, row};
    coordinates.insert(coordinates.end(), which_.begin(), which_.end());
    return tile_(coordinates);
  }

  void vectorize_last() { tile_.update(tile_.num_update_definitions() - 1).vectorize(lane_); }

  Halide::Func tile_;
  int vectors_, rows_;
  std::vector<Halide::Var> which_;
  Halide::Var lane_{"l"};
};

}  // namespace ballast::kernels
