// What the generators of poolings share. Needs Halide; stateless.
#pragma once

#include "kernels/pointwise/pointwise_math.h"
#include "kernels/pool/pool_limits.h"

#include <Halide.h>

#include <limits>

namespace ballast::kernels {

// The elements that a window starting at `start` averages over, along one axis.
inline Halide::Expr count_along(const Halide::Expr& start, const Halide::Expr& kernel,
                                const Halide::Expr& extent, const Halide::Expr& after,
                                const Halide::Expr& counts_padding) {
  const Halide::Expr inside = min(start + kernel, extent) - max(start, 0);
  return select(counts_padding != 0, min(start + kernel, extent + after) - start, inside);
}

constexpr int kNoKey = std::numeric_limits<int>::min();  // before that of any element

// The bits of a float that is no NaN as an integer in the order of the floats, -0 before 0; and the
// way back.
inline Halide::Expr in_order(const Halide::Expr& bits) {
  return bits ^ ((bits >> 31) & 0x7fffffff);
}

// Integers in the order of the floats; both zeros are one, NaN is the largest.
inline Halide::Expr ordered_key(const Halide::Expr& value) {
  const Halide::Expr bits = Halide::reinterpret<int>(value);
  const Halide::Expr ordered = select(bits == kNoKey, 0, in_order(bits));
  return select(eq(value, value), ordered, std::numeric_limits<int>::max());
}

// Whether `next`, which comes later, replaces the largest `value` so far: a NaN before any number.
inline Halide::Expr wins_maximum(const Halide::Expr& next, const Halide::Expr& value) {
  return !le(next, value) && eq(value, value);
}

// What kernels that may average take beside the geometry.
template <class Derived>
class AveragingGenerator : public Halide::Generator<Derived> {
 protected:
  void add_counts() {
    bottom_ = this->template add_input<int>("bottom");
    right_ = this->template add_input<int>("right");
    counts_padding_ = this->template add_input<int>("counts_padding");
    share_ = this->template add_input<float>("share");  // 1 / count where all have one, else 0
  }
  Halide::Expr have_one_count() const { return *share_ != 0.0f; }
  // Of the window of so many elements that starts at (x, y) of a plane.
  Halide::Expr average(const Halide::Expr& total, const Halide::Expr& x, const Halide::Expr& y,
                       const Halide::Expr& kernel_w, const Halide::Expr& kernel_h,
                       const Halide::Expr& width, const Halide::Expr& height) const {
    const Halide::Expr count = count_along(x, kernel_w, width, *right_, *counts_padding_) *
                               count_along(y, kernel_h, height, *bottom_, *counts_padding_);
    return select(have_one_count(), strict_float(total * *share_),
                  strict_float(total / Halide::cast<float>(count)));
  }

 private:
  Halide::GeneratorInput<int>*bottom_ = nullptr, *right_ = nullptr, *counts_padding_ = nullptr;
  Halide::GeneratorInput<float>* share_ = nullptr;
};

}  // namespace ballast::kernels
