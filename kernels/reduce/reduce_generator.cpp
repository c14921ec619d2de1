// Reductions ahead of time.
#include "kernels/reduce/reduce_kernels.h"

HALIDE_REGISTER_GENERATOR(ballast::kernels::ReduceRows, reduce_rows)
HALIDE_REGISTER_GENERATOR(ballast::kernels::ReduceRowsByLane, reduce_rows_by_lane)
HALIDE_REGISTER_GENERATOR(ballast::kernels::ReduceColumns, reduce_columns)
