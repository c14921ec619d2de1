// Terms combined by neighbours: shorter chains than one after the other and, of sums, a smaller
// error.
#pragma once

#include <Halide.h>

#include <functional>
#include <vector>

namespace ballast::kernels {

using Combination = std::function<Halide::Expr(const Halide::Expr& a, const Halide::Expr& b)>;

// Of term(0) ... term(count - 1), a power of two of them, pair by pair.
inline Halide::Expr pairwise(int count, const std::function<Halide::Expr(int)>& term,
                             const Combination& combine) {
  std::vector<Halide::Expr> totals;
  for (int i = 0; i < count; ++i) totals.push_back(term(i));
  for (; totals.size() > 1; totals.resize(totals.size() / 2)) {
    for (size_t i = 0; i < totals.size() / 2; ++i) {
      totals[i] = combine(totals[2 * i], totals[2 * i + 1]);
    }
  }
  return totals[0];
}

inline Halide::Expr pairwise_sum(int count, const std::function<Halide::Expr(int)>& term) {
  return pairwise(count, term, [](const Halide::Expr& a, const Halide::Expr& b) {
    return Halide::strict_float(a + b);
  });
}

}  // namespace ballast::kernels
