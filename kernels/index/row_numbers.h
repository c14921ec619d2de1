// Numbers that pick rows, in [word][x][i][o]: of 64-bit numbers there are two words. A number n < 0
// counts from the end. Needs Halide; for generators.
#pragma once

#include <Halide.h>

namespace ballast::kernels {

struct PickedRow {
  Halide::Expr value, is_valid;
};

template <class Numbers>
PickedRow number_at(Numbers& numbers, const Halide::Expr& x, const Halide::Expr& i,
                    const Halide::Expr& o) {
  const Halide::Expr words = numbers.dim(0).extent(), low = numbers(0, x, i, o);
  return {low, words == 1 || numbers(words - 1, x, i, o) == (low >> 31)};
}

// The row of `rows` that it picks: an existing one.
template <class Numbers>
PickedRow picked_row(Numbers& numbers, const Halide::Expr& x, const Halide::Expr& i,
                     const Halide::Expr& o, const Halide::Expr& rows) {
  const PickedRow number = number_at(numbers, x, i, o);
  const Halide::Expr row = number.value + select(number.value < 0, rows, 0);
  return {clamp(row, 0, rows - 1), number.is_valid && row >= 0 && row < rows};
}

}  // namespace ballast::kernels
