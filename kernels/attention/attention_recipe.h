// Expressions and layouts that the tiled attention kernels share. Needs Halide; stateless.
#pragma once

#include <Halide.h>

#include <functional>
#include <limits>
#include <vector>

namespace ballast::kernels::attention {

constexpr int kLanes = 16;
constexpr int kPanel = 2;        // vectors in a packed panel of columns
constexpr int kMaxVectors = 16;  // of a row that the tiles' stack has room for: 256 elements
constexpr float kInfinity = std::numeric_limits<float>::infinity();

Halide::Expr fused_multiply_add(const Halide::Expr& a, const Halide::Expr& b,
                                const Halide::Expr& c);
Halide::Expr larger(const Halide::Expr& a, const Halide::Expr& b);

// exp for what is at most a little above 0, in a third of exp_f32's instructions: within 2 units of
// the last place; below -87.3 it is 0 (there are no denormal results), above 88.3 that of 88.3.
Halide::Expr exp_of_scores(const Halide::Expr& x);

// value, or 0 for -infinity (the largest score of a row without any): scores less it are not NaN.
Halide::Expr finite_or_zero(const Halide::Expr& value);

// The terms of all lanes combined pairwise, as a tree.
Halide::Expr reduce_lanes(const std::function<Halide::Expr(int lane)>& term,
                          Halide::Expr (*combine)(const Halide::Expr&, const Halide::Expr&));

}  // namespace ballast::kernels::attention
