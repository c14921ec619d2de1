// C = epilogue(A B) in f32, one or many products at once:
//
//   matmul_tiles    CPUs: one work-item computes register tiles of rows x lanes. A is read as
//                   broadcast scalars; B comes in vectors of 16 lanes or 8.
//                   matmul_turned and matmul_short have two more kinds of them.
//   matmul_blocks   GPUs: a work-group computes a block and shares what it reads.
//   matmul_general  any strides and integers; on CPUs for products too small to be worth packing.
//   beside this file: matmul_small (many small products), matmul_line, matmul_vector (a vector and
//                   a matrix), matmul_dot (few rows and a matrix).
//
// An element is always the fma chain over k from 0 upwards, started at +0, whatever the kernel, the
// epilogue or the tile (matmul_dot and matmul_line alone differ, where nothing else is a choice):
// equal products are equal bit for bit. fma is spelled out because PoCL contracts nothing by
// itself: with mul + add it reached half the rate on the same tile.
#include "kernels/matmul/matmul_blocks.h"
#include "kernels/matmul/matmul_general.h"
#include "kernels/matmul/matmul_short.h"
#include "kernels/matmul/matmul_tiles.h"
#include "kernels/matmul/matmul_turned.h"

HALIDE_REGISTER_GENERATOR(ballast::kernels::MatmulTiles, matmul_tiles)
HALIDE_REGISTER_GENERATOR(ballast::kernels::MatmulBlocks, matmul_blocks)
HALIDE_REGISTER_GENERATOR(ballast::kernels::MatmulGeneral, matmul_general)
HALIDE_REGISTER_GENERATOR(ballast::kernels::MatmulTurned, matmul_turned)
HALIDE_REGISTER_GENERATOR(ballast::kernels::MatmulShort, matmul_short)
