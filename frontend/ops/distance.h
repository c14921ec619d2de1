// Lengths of vectors and angles between them.
#pragma once

#include "frontend/ops/reduce.h"
#include "frontend/tensor/operand.h"

namespace ballast::ops {

// (sum |x|^ord)^(1 / ord) over axes, the vector norms of numpy.linalg.norm and torch: for 0 how
// many elements are not 0, for an infinity the largest (-infinity: the smallest) magnitude. The
// slope at a vector of zeros is 0.
Tensor norm(const Operand& x, double ord = 2, const Axes& axes = {}, bool keep_dims = false);
// x over its norm along an axis, or over epsilon where that is less (torch's functional.normalize).
Tensor normalize(const Operand& x, double ord = 2, int64_t axis = 1, double epsilon = 1e-12);
// sum(a b) over the product of a's and b's norms along an axis, each at least epsilon.
Tensor cosine_similarity(const Operand& a, const Operand& b, int64_t axis = 1,
                         double epsilon = 1e-8);

}  // namespace ballast::ops
