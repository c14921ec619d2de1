// What the generators of convolutions on GPUs share: the geometry, which they are given first, and
// elements of planes with zeros around them. Needs Halide.
#pragma once

#include "kernels/conv/conv_recipe.h"

#include <string>

namespace ballast::kernels {

// Of numbers none of which is negative: plain division, where Halide's own rounds down and expects
// anything.
inline Halide::Expr over(const Halide::Expr& a, const Halide::Expr& b) {
  return unsafe_promise_clamped(div_round_to_zero(a, b), 0, a);
}
inline Halide::Expr modulo(const Halide::Expr& a, const Halide::Expr& b) {
  return unsafe_promise_clamped(mod_round_to_zero(a, b), 0, b - 1);
}

// The same of numbers below 2^20, for loops, whose compilers divide by a number that is not known
// in some twenty instructions.
inline Halide::Expr quick_over(const Halide::Expr& a, const Halide::Expr& b) {
  const Halide::Expr of_one = 1.0f / Halide::cast<float>(b);
  return unsafe_promise_clamped(Halide::cast<int>((Halide::cast<float>(a) + 0.5f) * of_one), 0, a);
}

// Whether 0 <= at < end: one comparison, of numbers without sign.
inline Halide::Expr is_below(const Halide::Expr& at, const Halide::Expr& end) {
  return Halide::cast<uint32_t>(at) < Halide::cast<uint32_t>(end);
}

template <class Derived>
class WindowGenerator : public Halide::Generator<Derived> {
 public:
  Halide::GeneratorParam<std::string> device_class{"device_class", "gpu"};

 protected:
  using Expr = Halide::Expr;

  Halide::GeneratorInput<int> stride_h{"stride_h"}, stride_w{"stride_w"}, top{"top"}, left{"left"},
      dilation_h{"dilation_h"}, dilation_w{"dilation_w"};

  // tensor(x, y, c, n) where x and y lie in it, else 0.
  template <class Tensor>
  static Expr or_zero(Tensor& tensor, const Expr& x, const Expr& y, const Expr& c, const Expr& n) {
    const Expr width = tensor.dim(0).extent(), height = tensor.dim(1).extent();
    const Expr value = tensor(clamp(x, 0, width - 1), clamp(y, 0, height - 1), c, n);
    return select(x >= 0 && x < width && y >= 0 && y < height, value, 0.0f);
  }
};

// The operands of a kernel towards y, behind the geometry: `Base` is a WindowGenerator. y may have
// a dimension more.
template <class Base, int Dimensions = 4>
class ForwardOperands : public Base {
 public:
  Halide::GeneratorInput<Halide::Buffer<float, 4>> in{"in"};
  Halide::GeneratorInput<Halide::Buffer<float, 4>> weights{"weights"};
  EpilogueInputs<1, 4> epilogue;
  Halide::GeneratorInput<int> group_outputs{"group_outputs"};
  Halide::GeneratorOutput<Halide::Buffer<float, Dimensions>> out{"out"};

 protected:
  void set_layouts() {
    set_mins(in, weights, out);
    epilogue.set_layouts();
    epilogue.residual.dim(0).set_stride(Halide::Expr());
  }
};

}  // namespace ballast::kernels
