// Random initial values, the same on every platform: they follow from set_seed and the order of
// calls alone. Thread-safe.
#pragma once

#include "frontend/tensor.h"

namespace ballast {

void set_seed(uint64_t seed);  // restarts the sequence; 0 at first

namespace nn {

Tensor uniform(const Shape& shape, double low, double high);
// Uniform with variance gain^2 / fan_in, gain of leaky ReLU with this negative slope; shape [out,
// in].
Tensor he_uniform(const Shape& shape, double negative_slope);

}  // namespace nn
}  // namespace ballast
