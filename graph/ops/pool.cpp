#include "graph/op.h"

namespace ballast::graph {

std::vector<OpDef> pool_ops() { return {}; }

}  // namespace ballast::graph
