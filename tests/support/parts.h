// Functions whose results are sums of elements of x, each times a share: values and derivatives.
#pragma once

#include "frontend/ballast_frontend.h"
#include "tests/samples.h"

#include <gtest/gtest.h>

#include <functional>
#include <utility>
#include <vector>

namespace ballast::tests {

// What an element of a result is the sum of: elements of x, each times a share.
using Parts = std::vector<std::pair<size_t, double>>;

inline double sum_of(const Parts& parts, const std::vector<double>& x) {
  double sum = 0;
  for (const auto& [at, share] : parts) sum += share * x[at];
  return sum;
}

// The call, the gradient of sum(w y^3), and that gradient's derivative along v. Where which parts
// an element has depends on x, as a maximum's does, no two elements of x are so near that it
// matters.
inline void expect_parts(const std::function<Tensor(const Tensor&)>& call, const HostArray& x,
                         const Shape& shape, const std::vector<Parts>& results) {
  const HostArray w = real(shape, 0.5, 1.5), v = real(x.type.shape, -1, 1);
  HostArray y{{x.type.dtype, shape}, {}}, slopes{x.type, std::vector<double>(x.values.size())},
      bends = slopes;
  for (size_t i = 0; i < results.size(); ++i) {
    const double value = sum_of(results[i], x.values), moved = sum_of(results[i], v.values);
    y.values.push_back(value);
    for (const auto& [at, share] : results[i]) {
      slopes.values[at] += 3 * w.values[i] * value * value * share;
      bends.values[at] += 6 * w.values[i] * value * moved * share;
    }
  }
  const Tensor in = to_tensor(x);
  const double part = x.type.dtype == DType::kF32 ? 1e-6 : 0x1p-8;
  EXPECT_EQ(difference(to_array(call(in)), y, part, part), "");
  if (x.type.dtype != DType::kF32) return;
  const auto cubes = [&](Tensor t) {
    const Tensor z = call(t);
    return ops::sum(to_tensor(w) * z * z * z);
  };
  const auto [gradient, bend] = jvp(grad(cubes), in, to_tensor(v));
  EXPECT_EQ(difference(to_array(gradient), slopes, 1e-5, 1e-5), "");
  EXPECT_EQ(difference(to_array(bend), bends, 1e-5, 1e-5), "");
}

}  // namespace ballast::tests
