// How the tiles of a product on CPUs are shared out: a work-group computes some rows of tiles of
// one panel.
#pragma once

#include "kernels/matmul/matmul_choice.h"

namespace ballast::kernels {

// How many tiles of rows a group computes, of how many panels, and what all take.
struct Grouping {
  int64_t tiles = 0, panels = 1;
  double nanoseconds = 0;
};

// For a choice whose tile has panels. `tile_ns`: what two cores take for one.
Grouping group_tiles(const MatmulProblem& problem, MatmulChoice choice, double tile_ns);

// The same where k passes in chunks.
Grouping group_chunks(const MatmulProblem& problem, const MatmulChoice& choice, double tile_ns);

}  // namespace ballast::kernels
