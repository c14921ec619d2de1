// How the kernels along one axis divide it, by its elements: plans and kernels agree on it.
#pragma once

namespace ballast::kernels {

constexpr int kRowStep = 64;             // of a row, on CPUs four vectors side by side
constexpr int kLongestCachedRow = 4096;  // a kernel keeps rows up to these on its stack
constexpr int kShortRow = 256;           // and takes several at once of rows up to these

// Columns of a CPU's work-group.
constexpr int kColumns = 64, kWideColumns = 256;

// Whether reductions across an axis take wide groups of `columns`: a number or an expression.
template <class Number>
auto are_wide_columns(const Number& columns) {
  return columns % kWideColumns == 0 || columns >= 1000;
}

}  // namespace ballast::kernels
