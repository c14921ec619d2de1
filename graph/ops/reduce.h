// The axes of reductions, for the ops and the passes that look at them.
#pragma once

#include "graph/op.h"

#include <vector>

namespace ballast::graph {

// Of the attribute "axis" or "axes", for a tensor of this rank: sorted, distinct, not negative; no
// axes mean all. Throws kInvalidArgument where they are out of range or repeat.
std::vector<int64_t> reduced_axes(const Attrs& attrs, size_t rank);

}  // namespace ballast::graph
