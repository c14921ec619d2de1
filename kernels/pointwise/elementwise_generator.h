// What the generators of elementwise kernels share: up to four nested loops, extents and strides
// given at run time. For generators only.
#pragma once

#include "kernels/pointwise/pointwise_recipe.h"

#include <Halide.h>

#include <sstream>
#include <string>
#include <vector>

namespace ballast::kernels {

inline std::vector<std::string> split_list(const std::string& list) {
  std::vector<std::string> items;
  std::stringstream stream(list);
  for (std::string item; std::getline(stream, item, ',');) items.push_back(item);
  return items;
}

using Tensor = Halide::GeneratorInput<Halide::Buffer<>>;

// What all elementwise generators share. `patterns` lists the kinds of operands that get a variant
// of their own: per input 1 where it is dense, 0 where it repeats along the innermost dimension.
template <class Derived>
class ElementwiseGenerator : public Halide::Generator<Derived> {
 public:
  Halide::GeneratorParam<std::string> device_class{"device_class", "cpu"};
  Halide::GeneratorParam<std::string> patterns{"patterns", "1"};

 protected:
  Nest nest_ = make_nest(4);

  bool is_gpu() const { return device_class.value() == "gpu"; }

  void schedule_elementwise(Halide::Func out, const std::vector<Halide::OutputImageParam>& outputs,
                            const std::vector<Tensor*>& inputs, const Halide::Expr& chunk_x,
                            const Halide::Expr& chunk_y) {
    for (int d = 0; d < 4; ++d) {
      Halide::OutputImageParam(outputs[0]).dim(d).set_min(0);  // the others' follow
    }
    for (Halide::OutputImageParam output : outputs) {
      output.dim(1).set_stride(outputs[0].dim(0).extent());
    }
    for (Tensor* input : inputs) {
      for (int d = 0; d < 4; ++d) input->dim(d).set_min(0).set_stride(Halide::Expr());
    }
    schedule_nest(out, nest_, chunk_x, chunk_y, is_gpu());
    const Halide::Expr lanes = outputs[0].dim(0).extent();
    for (const std::string& pattern : split_list(patterns)) {
      Halide::Expr is_vector = lanes == kLanes, is_scalar = lanes == 1;
      for (size_t i = 0; i < inputs.size(); ++i) {
        const int stride = pattern.at(i) - '0';
        is_vector = is_vector && inputs[i]->dim(0).stride() == stride;
        is_scalar = is_scalar && inputs[i]->dim(1).stride() == stride;
      }
      if (!is_gpu()) out.specialize(is_vector).vectorize(nest_.lane, kLanes);
      out.specialize(is_scalar);
    }
    out.specialize(lanes == 1);
  }
};

}  // namespace ballast::kernels
