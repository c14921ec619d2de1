// What the tiles of attention on CPUs hold: plans and kernels agree on it.
#pragma once

#include "kernels/recipe/lanes.h"

namespace ballast::kernels::attention {

constexpr int kMaxVectors = 16;  // of a row that the tiles' stack has room for: 256 elements
constexpr int kVectors = 2;      // of queries in a tile
constexpr int kQueries = kVectors * kLanes;
constexpr int kStep = 8;  // keys, or elements of a row, in a tile: with 2 vectors, 16 accumulators
constexpr int kKeyBlock = 64;  // keys that the gradient takes at a time

}  // namespace ballast::kernels::attention
