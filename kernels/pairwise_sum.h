// Sums by neighbours: shorter chains than one term after the other, and a smaller error.
#pragma once

#include <Halide.h>

#include <functional>
#include <vector>

namespace ballast::kernels {

// The sum of term(0) ... term(count - 1), a power of two of them, pair by pair.
inline Halide::Expr pairwise_sum(int count, const std::function<Halide::Expr(int)>& term) {
  std::vector<Halide::Expr> totals;
  for (int i = 0; i < count; ++i) totals.push_back(term(i));
  for (; totals.size() > 1; totals.resize(totals.size() / 2)) {
    for (size_t i = 0; i < totals.size() / 2; ++i) {
      totals[i] = Halide::strict_float(totals[2 * i] + totals[2 * i + 1]);
    }
  }
  return totals[0];
}

}  // namespace ballast::kernels
