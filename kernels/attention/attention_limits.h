// What the tiles of attention on CPUs hold: plans and kernels agree on it.
#pragma once

#include "kernels/recipe/lanes.h"

namespace ballast::kernels::attention {

constexpr int kMaxVectors = 16;  // of a row that the tiles' stack has room for: 256 elements
constexpr int kStep = 8;  // keys, or elements of a row, that the forward pass takes at a time

// A tile of queries, the vectors of sums that registers hold beside what they are made of (as many
// keys or elements of a row times the tile's), and how many keys the gradient takes at a time.
struct Tile {
  int lanes, vectors, sums, key_block;
  constexpr int queries() const { return lanes * vectors; }
};
constexpr Tile kWideTile{16, 2, 16, 64};   // of 32 registers of 64 bytes
constexpr Tile kNarrowTile{8, 3, 12, 60};  // of 16 registers of 32 bytes
constexpr Tile tile_of(bool narrow) { return narrow ? kNarrowTile : kWideTile; }
constexpr int kRowVectors = 2;  // of a row of k or v, whose sums are taken at a time

}  // namespace ballast::kernels::attention
