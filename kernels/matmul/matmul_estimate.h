// What a CPU takes for a choice, in nanoseconds of two cores. The figures are those of the machines
// that schedules were measured on; only their ratios matter. Private to this folder.
#pragma once

#include "kernels/matmul/matmul_choice.h"

namespace ballast::kernels {

// Of tiles, with what is packed before; also chooses how many of them a group computes.
double matmul_tile_ns(const MatmulProblem& problem, MatmulChoice& choice);
// Of a vector and a matrix that is contiguous along k.
double matmul_vector_ns(const MatmulProblem& problem, const MatmulChoice& choice);
// How much less dots take than a tile of the few rows' lanes, with what either packs before: a
// launch more for dots where they pack their rows, else for tiles. Tiles compute all lanes of a
// vector, dots whole blocks of rows, and fold each sum, which takes as long as some steps more.
// Fitted to measurements on an Emerald Rapids; elsewhere only the launch counts.
double matmul_dots_gain_ns(const MatmulProblem& problem, const MatmulChoice& dots);
// Of small products; also chooses how many of them a group computes.
double matmul_small_ns(const MatmulProblem& problem, MatmulChoice& choice);
// Of the kernel that takes anything.
double matmul_general_ns(const MatmulProblem& problem, const MatmulChoice& choice);

}  // namespace ballast::kernels
