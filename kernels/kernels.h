// The kernel families: shapes in, plan out. Shapes and dtypes have been checked by graph/ops;
// a dtype for which no kernel was built throws kUnimplemented naming the kernel.
//
// All tensors are dense row-major. Reductions accumulate in f32 in a fixed order that depends on
// shapes only, so results repeat bit for bit.
#pragma once

#include "kernels/attention/attention.h"
#include "kernels/conv/conv.h"
#include "kernels/index/index.h"
#include "kernels/matmul/matmul.h"
#include "kernels/norm/norm.h"
#include "kernels/optimizer/optimizer.h"
#include "kernels/pointwise/pointwise.h"
#include "kernels/pool/pool.h"
#include "kernels/random/random.h"
#include "kernels/reduce/reduce.h"
#include "kernels/rows/fuse_rows.h"
#include "kernels/shape/shape.h"
#include "kernels/softmax/softmax.h"
