// What the generators of convolutions on GPUs share: the geometry, which they are given first, and
// elements of planes with zeros around them. Needs Halide.
#pragma once

#include "kernels/conv/conv_recipe.h"
#include "kernels/recipe/places.h"

#include <string>

namespace ballast::kernels {

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
