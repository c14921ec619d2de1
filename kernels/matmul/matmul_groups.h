// How the tiles of a product on CPUs are shared out: a work-group computes some rows of tiles of
// one panel.
#pragma once

#include "kernels/matmul/matmul_choice.h"

namespace ballast::kernels {

// How many tiles a group computes, and what all take.
struct Grouping {
  int64_t tiles = 0;
  double nanoseconds = 0;
};

// For a choice whose tile has panels. `tile_ns`: what two cores take for one.
Grouping group_tiles(const MatmulProblem& problem, MatmulChoice choice, double tile_ns);

}  // namespace ballast::kernels
