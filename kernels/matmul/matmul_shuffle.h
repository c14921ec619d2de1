// Transposing blocks of 16 x 16 elements in registers.
#pragma once

#include <Halide.h>

#include <string>
#include <vector>

namespace ballast::kernels {

// block(column, row, others...) transposed by four perfect shuffles of its 256 elements, each a
// rotation of the element's 8-bit place by one: a result vector takes from two vectors only.
// Returns `block` and the steps after it; the last is the transpose.
inline std::vector<Halide::Func> transpose_16x16(const Halide::Func& block, const Halide::Var& l,
                                                 const Halide::Var& r,
                                                 const std::vector<Halide::Var>& others) {
  std::vector<Halide::Func> steps{block};
  for (int i = 0; i < 4; ++i) {
    std::vector<Halide::Expr> to = {l, r}, from = {(r % 2) * 8 + l / 2, r / 2 + (l % 2) * 8};
    to.insert(to.end(), others.begin(), others.end());
    from.insert(from.end(), others.begin(), others.end());
    Halide::Func step("shuffle" + std::to_string(i));
    step(to) = steps.back()(from);
    steps.push_back(step);
  }
  return steps;
}

}  // namespace ballast::kernels
