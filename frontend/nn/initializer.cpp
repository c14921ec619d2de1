#include "frontend/nn/initializer.h"

#include "frontend/generator.h"

#include <cmath>
#include <mutex>
#include <random>

namespace ballast {

namespace {

std::mutex mutex;
std::mt19937_64 generator(0);

// std::uniform_real_distribution differs between standard libraries; mt19937_64 does not.
double uniform_unit() { return static_cast<double>(generator() >> 11) * 0x1p-53; }

}  // namespace

void set_seed(uint64_t seed) {
  {
    std::lock_guard lock(mutex);
    generator.seed(seed);
  }
  default_generator().set_seed(seed);
}

namespace nn {

Tensor uniform(const Shape& shape, double low, double high) {
  std::vector<float> values(static_cast<size_t>(TensorType{DType::kF32, shape}.elements()));
  std::lock_guard lock(mutex);
  for (float& value : values) value = static_cast<float>(low + (high - low) * uniform_unit());
  return Tensor::from_host(values, shape);
}

Tensor he_uniform(const Shape& shape, double negative_slope) {
  double gain_squared = 2 / (1 + negative_slope * negative_slope);
  double bound = std::sqrt(3 * gain_squared / static_cast<double>(shape.at(1)));
  return uniform(shape, -bound, bound);
}

}  // namespace nn
}  // namespace ballast
