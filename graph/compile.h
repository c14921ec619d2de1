// The compiler: the visible list of passes. BALLAST_DUMP_GRAPH=1 prints the graph after each pass
// that changed it, to standard error.
#pragma once

#include "device/device.h"
#include "graph/graph.h"

namespace ballast::graph {

enum class Level : int { kO0 = 1, kO1 = 2 };  // the ABI's values

Graph optimize(const Graph& graph, Level level, const device::DevicePtr& device);

}  // namespace ballast::graph
