// What a drawn problem is made of (tests/drawn_problems.cpp): the same numbers for the same seed.
#pragma once

#include "frontend/tensor/types.h"

#include <cstdint>
#include <initializer_list>
#include <random>
#include <vector>

namespace ballast::tests {

class Draw {
 public:
  explicit Draw(uint64_t seed) : generator_(seed) {}

  int64_t below(int64_t n) { return static_cast<int64_t>(generator_() % static_cast<uint64_t>(n)); }
  bool one_in(int64_t n) { return below(n) == 0; }
  template <class T>
  T pick(std::initializer_list<T> of) {
    return of.begin()[below(static_cast<int64_t>(of.size()))];
  }
  // An element type: mostly f32.
  DType element();
  // From 1 to `limit`: small, or at, before or after a multiple of what kernels cut, or anything.
  int64_t extent(int64_t limit);
  // Now and then nothing.
  int64_t extent_or_none(int64_t limit) { return one_in(40) ? 0 : extent(limit); }
  // Of `rank` dimensions and at most `limit` elements.
  Shape shape(int64_t rank, int64_t limit);
  // One that broadcasts to `shape`: of fewer dimensions, or with some of extent 1.
  Shape broadcast_from(const Shape& shape);

 private:
  std::mt19937_64 generator_;
};

}  // namespace ballast::tests
