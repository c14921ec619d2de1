// The phases of dx of a convolution with strides along one axis: what each takes of the window and
// of dy. Plain values.
#pragma once

#include "kernels/types.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace ballast::kernels {

// Rows or columns `phase`, `phase` + stride, ...: taps first, first + stride, ..., `count` of them,
// over dy behind `before` zeros.
struct Phase {
  int64_t first, count, before;
  Phase(int64_t phase, int64_t padding, int64_t kernel, int64_t stride)
      : first((phase + padding) % stride),
        count(first < kernel ? ceil_div(kernel - first, stride) : 0),
        before(count - 1 - (phase + padding - first) / stride) {}
  // The tap that it begins with, as dx takes them backwards.
  int64_t last(int64_t stride) const { return first + (count - 1) * stride; }
};

// All phases, of which each has `length` rows or columns; of zeros before dy, and of rows or
// columns that their windows reach over.
struct Phases {
  std::vector<Phase> all;
  int64_t before = 0, extent = 0;
  bool has_empty = false;
  Phases(int64_t padding, int64_t kernel, int64_t stride, int64_t length) {
    for (int64_t phase = 0; phase < stride; ++phase) {
      all.emplace_back(phase, padding, kernel, stride);
      before = std::max(before, all.back().before);
      has_empty = has_empty || all.back().count == 0;
    }
    for (const Phase& one : all) {
      extent = std::max(extent, begin(one) + length + one.count - 1);
    }
  }
  // Where the first window of a phase begins behind the zeros.
  int64_t begin(const Phase& one) const { return before - one.before; }
};

}  // namespace ballast::kernels
