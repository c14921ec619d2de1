// Random initial values, the same on every platform up to libm's rounding: they follow from
// set_seed and the order of calls alone. Thread-safe. Names, formulas and defaults are those of
// mindspore.common.initializer (2.10).
#pragma once

#include "frontend/tensor/tensor.h"

#include <functional>
#include <string>

namespace ballast {

// Restarts the sequence, and the default generator's (generator.h); 0 at first.
void set_seed(uint64_t seed);

namespace nn {

// Makes the first value (f32) of a parameter of this shape: HeUniform()({10, 784}).
using Initializer = std::function<Tensor(const Shape&)>;

Initializer Constant(double value);
Initializer Zero();
Initializer One();
Initializer Uniform(double scale = 0.07);  // in [-scale, scale)
Initializer Normal(double sigma = 0.01, double mean = 0);
// Normal values between mean + a sigma and mean + b sigma.
Initializer TruncatedNormal(double sigma = 0.01, double mean = 0, double a = -2, double b = 2);

// Fans of a weight [out, in, ...]: fan_in = in times the extents after it, fan_out = out times
// them. Xavier: variance 2 gain^2 / (fan_in + fan_out).
Initializer XavierUniform(double gain = 1);
Initializer XavierNormal(double gain = 1);
// He: variance gain^2 / fan; gain^2 is 2 / (1 + negative_slope^2) for "leaky_relu", 2 for "relu",
// 1 for "linear", "sigmoid" and convolutions, 25/9 for "tanh"; mode "fan_in" or "fan_out".
Initializer HeUniform(double negative_slope = 0, const std::string& mode = "fan_in",
                      const std::string& nonlinearity = "leaky_relu");
Initializer HeNormal(double negative_slope = 0, const std::string& mode = "fan_in",
                     const std::string& nonlinearity = "leaky_relu");
// MindSpore's names: "zeros", "ones", "normal", "uniform", "xavier_uniform", "he_uniform", ...
Initializer initializer_named(const std::string& name);

Tensor uniform(const Shape& shape, double low, double high);
Tensor he_uniform(const Shape& shape, double negative_slope);

}  // namespace nn
}  // namespace ballast
