#include "tests/samples.h"

#include <cmath>
#include <limits>
#include <random>

namespace ballast::tests {

namespace {
std::mt19937_64 generator(1);
}

void seed_samples(uint64_t seed) { generator.seed(seed); }

HostArray real(const Shape& shape, double low, double high) {
  HostArray array{{DType::kF32, shape}, {}};
  for (int64_t i = 0; i < array.type.elements(); ++i) {
    double unit = static_cast<double>(generator() >> 11) * 0x1p-53;
    array.values.push_back(static_cast<float>(low + (high - low) * unit));
  }
  return array;
}

HostArray whole(const Shape& shape, int64_t below, DType dtype) {
  HostArray array = real(shape, 0, static_cast<double>(below));
  array.type.dtype = dtype;
  for (double& value : array.values) value = std::floor(value);
  return array;
}

HostArray boolean(const Shape& shape) { return whole(shape, 2, DType::kBool); }

HostArray typed(const Shape& shape, DType dtype) {
  if (dtype == DType::kF32) return real(shape, -2, 2);
  return whole(shape, dtype == DType::kBool ? 2 : 100, dtype);
}

HostArray scalar(double value) { return {{DType::kF32, {}}, {static_cast<float>(value)}}; }

HostArray special() {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  return {{DType::kF32, {10}}, {kNaN, kInf, -kInf, 0, -0.0, 1, -1, 1e30f, -1e30f, 0.5}};
}

const std::vector<Shape> kShapes = {{}, {1}, {7}, {3, 5}, {2, 3, 17}, {0, 4}, {2, 0}};

}  // namespace ballast::tests
