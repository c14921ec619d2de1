// The random data of the programs.
#pragma once

#include "frontend/nn/initializer.h"
#include "frontend/ops/pointwise.h"

namespace examples {

// np.random's: normal numbers, uniform ones in [0, 1), and whole ones (i32) in [low, high). They
// follow from set_seed, as initial weights do.
inline ballast::Tensor randn(const ballast::Shape& shape) { return ballast::nn::Normal(1)(shape); }
inline ballast::Tensor rand(const ballast::Shape& shape) {
  return ballast::nn::uniform(shape, 0, 1);
}
inline ballast::Tensor randint(int64_t low, int64_t high, const ballast::Shape& shape) {
  using namespace ballast;
  Tensor values =
      ops::floor(nn::uniform(shape, static_cast<double>(low), static_cast<double>(high)));
  return ops::cast(ops::minimum(values, high - 1), DType::kI32);  // f32 may round up to high
}

}  // namespace examples
