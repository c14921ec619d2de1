// The second file of the shape family. Stateless.
#pragma once

#include "graph/op.h"

namespace ballast::graph {

std::vector<OpDef> region_ops();  // region.cpp

}  // namespace ballast::graph
