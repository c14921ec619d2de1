#include "graph/op.h"

namespace ballast::graph {

std::vector<OpDef> index_ops() { return {}; }

}  // namespace ballast::graph
