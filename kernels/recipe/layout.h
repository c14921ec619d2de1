// Where the elements of a generator's operands lie. Needs Halide; stateless.
#pragma once

#include <Halide.h>

namespace ballast::kernels {

// Coordinates begin at 0; the first dimension stays dense.
template <class... Tensors>
void set_mins(Tensors&... tensors) {
  const auto set = [](auto& tensor) {
    for (int d = 0; d < tensor.dimensions(); ++d) tensor.dim(d).set_min(0);
  };
  (set(tensors), ...);
}

// Nor need the first dimension be dense.
template <class... Tensors>
void set_any_layout(Tensors&... tensors) {
  set_mins(tensors...);
  (tensors.dim(0).set_stride(Halide::Expr()), ...);
}

}  // namespace ballast::kernels
