// How random numbers are divided: plans and kernels agree on it.
#pragma once

#include "kernels/recipe/lanes.h"

namespace ballast::kernels {

constexpr int kStrip = 4 * kLanes;  // elements of a vector of counter blocks
constexpr int kMaxBuckets = 2048;   // of a permutation
constexpr int kGroupChunk = 512;    // numbers of a permutation that a GPU's work-group counts

}  // namespace ballast::kernels
