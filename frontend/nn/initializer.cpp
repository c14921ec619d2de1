#include "frontend/nn/initializer.h"

#include "frontend/tensor/generator.h"

#include <cmath>
#include <mutex>
#include <random>

namespace ballast {

namespace {

std::mutex mutex;
std::mt19937_64 generator(0);

// std::uniform_real_distribution differs between standard libraries; mt19937_64 does not.
double uniform_unit() { return static_cast<double>(generator() >> 11) * 0x1p-53; }

// Box and Muller; the second value is dropped, so that a number depends on its place alone.
double normal_unit() {
  constexpr double kTwoPi = 6.283185307179586;
  const double radius = std::sqrt(-2 * std::log(1 - uniform_unit()));
  return radius * std::cos(kTwoPi * uniform_unit());
}

template <class Draw>
Tensor drawn(const Shape& shape, Draw&& draw) {
  std::vector<float> values(static_cast<size_t>(TensorType{DType::kF32, shape}.elements()));
  std::lock_guard lock(mutex);
  for (float& value : values) value = static_cast<float>(draw());
  return Tensor::from_host(values, shape);
}

struct Fans {
  double in, out;
};

Fans fans_of(const Shape& shape) {
  if (shape.size() < 2) {
    fail(BALLAST_INVALID_ARGUMENT,
         "[initializer] a fan needs a weight [out, in, ...], the shape is {}", to_string(shape));
  }
  double window = 1;
  for (size_t axis = 2; axis < shape.size(); ++axis) window *= static_cast<double>(shape[axis]);
  return {static_cast<double>(shape[1]) * window, static_cast<double>(shape[0]) * window};
}

double xavier_deviation(const Shape& shape, double gain) {
  const Fans fans = fans_of(shape);
  return gain * std::sqrt(2 / (fans.in + fans.out));
}

struct He {
  double gain;
  bool is_fan_in;

  He(double negative_slope, const std::string& mode, const std::string& nonlinearity)
      : gain(gain_of(negative_slope, nonlinearity)), is_fan_in(mode == "fan_in") {
    if (mode != "fan_in" && mode != "fan_out") {
      fail(BALLAST_INVALID_ARGUMENT, "[initializer] mode is \"{}\", expected fan_in or fan_out",
           mode);
    }
  }
  static double gain_of(double negative_slope, const std::string& nonlinearity) {
    if (nonlinearity == "leaky_relu") {
      return std::sqrt(2 / (1 + negative_slope * negative_slope));
    }
    if (nonlinearity == "relu") return std::sqrt(2.0);
    if (nonlinearity == "tanh") return 5.0 / 3;
    for (const char* linear : {"linear", "sigmoid", "conv1d", "conv2d", "conv3d"}) {
      if (nonlinearity == linear) return 1;
    }
    fail(BALLAST_INVALID_ARGUMENT, "[initializer] nonlinearity is \"{}\"", nonlinearity);
  }
  double deviation(const Shape& shape) const {
    const Fans fans = fans_of(shape);
    return gain / std::sqrt(is_fan_in ? fans.in : fans.out);
  }
};

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
  return drawn(shape, [=] { return low + (high - low) * uniform_unit(); });
}

Tensor he_uniform(const Shape& shape, double negative_slope) {
  return HeUniform(negative_slope)(shape);
}

Initializer Constant(double value) {
  return [value](const Shape& shape) { return Tensor::full(shape, value); };
}

Initializer Zero() { return Constant(0); }

Initializer One() { return Constant(1); }

Initializer Uniform(double scale) {
  return [scale](const Shape& shape) { return uniform(shape, -scale, scale); };
}

Initializer Normal(double sigma, double mean) {
  return [=](const Shape& shape) {
    return drawn(shape, [=] { return mean + sigma * normal_unit(); });
  };
}

Initializer TruncatedNormal(double sigma, double mean, double a, double b) {
  if (!(a < b) || a > 4 || b < -4) {
    fail(BALLAST_INVALID_ARGUMENT,
         "[TruncatedNormal] the bounds are {} and {} deviations, expected them in order and near 0",
         a, b);
  }
  return [=](const Shape& shape) {
    return drawn(shape, [=] {
      double unit = normal_unit();
      while (unit < a || unit > b) unit = normal_unit();
      return mean + sigma * unit;
    });
  };
}

namespace {

// Uniform of this standard deviation.
Tensor uniform_of(const Shape& shape, double deviation) {
  const double bound = std::sqrt(3.0) * deviation;
  return uniform(shape, -bound, bound);
}

}  // namespace

Initializer XavierUniform(double gain) {
  return [gain](const Shape& shape) { return uniform_of(shape, xavier_deviation(shape, gain)); };
}

Initializer XavierNormal(double gain) {
  return [gain](const Shape& shape) { return Normal(xavier_deviation(shape, gain))(shape); };
}

Initializer HeUniform(double negative_slope, const std::string& mode,
                      const std::string& nonlinearity) {
  const He he(negative_slope, mode, nonlinearity);
  return [he](const Shape& shape) { return uniform_of(shape, he.deviation(shape)); };
}

Initializer HeNormal(double negative_slope, const std::string& mode,
                     const std::string& nonlinearity) {
  const He he(negative_slope, mode, nonlinearity);
  return [he](const Shape& shape) { return Normal(he.deviation(shape))(shape); };
}

Initializer initializer_named(const std::string& name) {
  if (name == "zeros") return Zero();
  if (name == "ones") return One();
  if (name == "uniform") return Uniform();
  if (name == "normal") return Normal();
  if (name == "truncatedNormal") return TruncatedNormal();
  if (name == "xavier_uniform") return XavierUniform();
  if (name == "xavier_normal") return XavierNormal();
  if (name == "he_uniform") return HeUniform();
  if (name == "he_normal") return HeNormal();
  fail(BALLAST_INVALID_ARGUMENT,
       "[initializer] \"{}\" is not one of zeros, ones, uniform, normal, truncatedNormal, "
       "xavier_uniform, xavier_normal, he_uniform, he_normal",
       name);
}

}  // namespace nn
}  // namespace ballast
