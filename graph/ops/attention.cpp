#include "graph/op.h"

namespace ballast::graph {

std::vector<OpDef> attention_ops() { return {}; }

}  // namespace ballast::graph
