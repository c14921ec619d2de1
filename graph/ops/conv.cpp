#include "graph/op.h"

namespace ballast::graph {

std::vector<OpDef> conv_ops() { return {}; }

}  // namespace ballast::graph
