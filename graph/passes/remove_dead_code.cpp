#include "graph/effect.h"
#include "graph/passes.h"

#include <algorithm>

namespace ballast::graph {

Graph remove_dead_code(const Graph& graph) {
  std::vector<bool> is_needed(graph.value_count());
  for (ValueId id : graph.outputs()) is_needed[id] = true;
  for (ValueId id : graph.updates()) {
    if (id != kNoValue) is_needed[id] = true;
  }
  std::vector<bool> is_kept(graph.nodes().size());
  for (size_t i = graph.nodes().size(); i-- > 0;) {
    const Node& node = graph.nodes()[i];
    is_kept[i] = has_effect(node) || std::any_of(node.outputs.begin(), node.outputs.end(),
                                                 [&](ValueId id) { return is_needed[id]; });
    if (!is_kept[i]) continue;
    for (ValueId id : node.inputs) is_needed[id] = true;
  }
  Rewrite rewrite(graph);
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    if (is_kept[i]) rewrite.keep(graph.nodes()[i]);
  }
  return rewrite.finish();
}

}  // namespace ballast::graph
