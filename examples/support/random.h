// The random data of the programs.
#pragma once

#include "frontend/nn/initializer.h"

namespace examples {

// np.random.randn and np.random.rand: normal numbers, and uniform ones in [0, 1). They follow from
// set_seed, as initial weights do.
inline ballast::Tensor randn(const ballast::Shape& shape) { return ballast::nn::Normal(1)(shape); }
inline ballast::Tensor rand(const ballast::Shape& shape) {
  return ballast::nn::uniform(shape, 0, 1);
}

}  // namespace examples
