// Random initial values, the same on every platform: they follow from set_seed and the order of
// calls alone. Thread-safe.
#pragma once

#include "frontend/tensor.h"

namespace ballast {

// Restarts the sequence, and the default generator's (generator.h); 0 at first.
void set_seed(uint64_t seed);

namespace nn {

Tensor uniform(const Shape& shape, double low, double high);
// Uniform with variance gain^2 / fan_in, gain of leaky ReLU with this negative slope; shape [out,
// in].
Tensor he_uniform(const Shape& shape, double negative_slope);

}  // namespace nn
}  // namespace ballast
