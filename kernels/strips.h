// What the generators of strips (conv_strips_generator.cpp) share. Needs Halide.
#pragma once

#include "kernels/conv/conv_window.h"

#include <string>
#include <vector>

namespace ballast::kernels {

// A work-item's elements of a plane with zeros around it, in registers: by column and row from a
// place on.
class StripOfPlane {
 public:
  explicit StripOfPlane(const std::string& name)
      : column_(name + "_column"), line_(name + "_line"), element_(name) {}

  // Of the plane number `plane` of dense `tensor`, which has one dimension, from (x, y) on; all of
  // them depend on `vars`.
  template <class Tensor>
  void define(Tensor& tensor, const Halide::Expr& width, const Halide::Expr& height,
              const Halide::Expr& x, const Halide::Expr& y, const Halide::Expr& plane,
              const std::vector<Halide::Var>& vars) {
    using namespace Halide;
    const auto with = [&](std::vector<Var> own) {
      own.insert(own.end(), vars.begin(), vars.end());
      return own;
    };
    const auto at = [&](Expr own) {
      std::vector<Expr> place = {std::move(own)};
      place.insert(place.end(), vars.begin(), vars.end());
      return place;
    };
    column_(with({q_})) = clamp(x + q_, 0, width - 1);
    line_(with({j_})) = (plane * height + clamp(y + j_, 0, height - 1)) * width;
    const Expr place =
        unsafe_promise_clamped(line_(at(j_)) + column_(at(q_)), 0, tensor.dim(0).extent() - 1);
    element_(with({q_, j_})) =
        select(is_below(x + q_, width) && is_below(y + j_, height), tensor(place), 0.0f);
    tensor.dim(0).set_min(0);
  }

  Halide::Expr operator()(const Halide::Expr& column, const Halide::Expr& row,
                          const std::vector<Halide::Expr>& vars) const {
    std::vector<Halide::Expr> place = {column, row};
    place.insert(place.end(), vars.begin(), vars.end());
    return element_(place);
  }

  // `rows`: where the rows are read that are needed there, of `strip` or a loop in it.
  void schedule(const Halide::LoopLevel& strip, const Halide::LoopLevel& rows) {
    column_.compute_at(strip).unroll(q_);
    line_.compute_at(rows).unroll(j_);
    element_.compute_at(rows).unroll(q_).unroll(j_);
    for (Halide::Func func : {column_, line_, element_}) {
      func.store_in(Halide::MemoryType::Stack).never_partition_all();
    }
  }

 private:
  Halide::Var q_{"q"}, j_{"j"};
  Halide::Func column_, line_, element_;
};

// Whether a tap of a window exists that is known only when loops are written out.
inline Halide::Expr is_tap(const Halide::Expr& tap, int taps) { return tap >= 0 && tap < taps; }
inline Halide::Expr as_tap(const Halide::Expr& tap, int taps) {
  return unsafe_promise_clamped(tap, 0, taps - 1);
}

}  // namespace ballast::kernels
