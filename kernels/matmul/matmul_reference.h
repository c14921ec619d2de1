// Operands of products for tests, and the products in double and as every kernel promises them.
#pragma once

#include "kernels/test_support.h"

#include <fmt/format.h>

#include <cmath>
#include <string>
#include <vector>

namespace ballast::kernels::testing {

inline std::string name_of(DeviceClass device_class, const MatmulConfig& c) {
  return fmt::format("{} {}x{}x{}{}{}{} {}", class_name(device_class), c.m, c.n, c.k,
                     c.transpose_a ? " A'" : "", c.transpose_b ? " B'" : "",
                     c.has_bias ? " bias" : "", c.activation);
}

// A, B, bias, y of a product; inputs_of picks what a config takes.
struct ProductOperands {
  HostTensor a, b, bias, y;
};

inline ProductOperands make_operands(const MatmulConfig& c) {
  const Shape a = c.transpose_a ? Shape{c.k, c.m} : Shape{c.m, c.k};
  const Shape b = c.transpose_b ? Shape{c.n, c.k} : Shape{c.k, c.n};
  return {random_f32(a, 1), random_f32(b, 2), random_f32({c.n}, 3), random_f32({c.m, c.n}, 4)};
}

inline std::vector<HostTensor> inputs_of(const ProductOperands& o, const MatmulConfig& c) {
  std::vector<HostTensor> inputs = {o.a, o.b};
  if (c.has_bias) inputs.push_back(o.bias);
  if (c.activation == "relu_grad") inputs.push_back(o.y);
  return inputs;
}

// The product in double, and how large its terms were (which bounds the rounding error).
struct ProductReference {
  std::vector<double> value, magnitude;
};

inline ProductReference reference_of(const MatmulConfig& c, const ProductOperands& o) {
  const std::vector<float> a = o.a.as<float>(), b = o.b.as<float>();
  ProductReference r;
  for (int64_t i = 0; i < c.m; ++i) {
    for (int64_t j = 0; j < c.n; ++j) {
      double sum = 0, magnitude = 0;
      for (int64_t k = 0; k < c.k; ++k) {
        const double term = double{a[c.transpose_a ? k * c.m + i : i * c.k + k]} *
                            double{b[c.transpose_b ? j * c.k + k : k * c.n + j]};
        sum += term;
        magnitude += std::fabs(term);
      }
      r.value.push_back(sum);
      r.magnitude.push_back(magnitude);
    }
  }
  return r;
}

// The float chain every kernel promises: fma over k upwards, from +0.
inline std::vector<float> chain_of(const MatmulConfig& c, const ProductOperands& o) {
  const std::vector<float> a = o.a.as<float>(), b = o.b.as<float>();
  std::vector<float> result;
  for (int64_t i = 0; i < c.m; ++i) {
    for (int64_t j = 0; j < c.n; ++j) {
      float sum = 0;
      for (int64_t k = 0; k < c.k; ++k) {
        sum = std::fma(a[c.transpose_a ? k * c.m + i : i * c.k + k],
                       b[c.transpose_b ? j * c.k + k : k * c.n + j], sum);
      }
      result.push_back(sum);
    }
  }
  return result;
}

}  // namespace ballast::kernels::testing
