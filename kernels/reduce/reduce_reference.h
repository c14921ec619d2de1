// Reductions by a plain loop, in double; for tests.
#pragma once

#include "kernels/test_support.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace ballast::kernels::testing {

inline double start_of(const std::string& kind) {
  if (kind == "prod" || kind == "all") return 1;
  if (kind == "max") return -INFINITY;
  if (kind == "min") return INFINITY;
  return 0;
}

inline double fold(const std::string& kind, double total, double value) {
  if (kind == "sum" || kind == "mean") return total + value;
  if (kind == "prod") return total * value;
  if (kind == "any") return total != 0 || value != 0;
  if (kind == "all") return total != 0 && value != 0;
  if (std::isnan(total) || std::isnan(value)) return NAN;
  return kind == "max" ? std::max(total, value) : std::min(total, value);
}

inline Shape kept_shape(const Shape& shape, const std::vector<int64_t>& axes) {
  Shape kept;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (!std::binary_search(axes.begin(), axes.end(), static_cast<int64_t>(d))) {
      kept.push_back(shape[d]);
    }
  }
  return kept;
}

template <class T>
std::vector<double> reference(const std::string& kind, const Shape& shape,
                              const std::vector<int64_t>& axes, const std::vector<T>& values) {
  const Shape kept = kept_shape(shape, axes);
  std::vector<double> totals(elements(kept), start_of(kind));
  size_t at = 0;
  for_each_index(shape, [&](const std::vector<int64_t>& index) {
    int64_t to = 0;
    for (size_t d = 0; d < shape.size(); ++d) {
      if (!std::binary_search(axes.begin(), axes.end(), static_cast<int64_t>(d))) {
        to = to * shape[d] + index[d];
      }
    }
    totals[to] = fold(kind, totals[to], static_cast<double>(values[at++]));
  });
  if (kind == "mean") {
    const double count = static_cast<double>(elements(shape)) / std::max<double>(1, totals.size());
    for (double& total : totals) total /= count;
  }
  return totals;
}

}  // namespace ballast::kernels::testing
