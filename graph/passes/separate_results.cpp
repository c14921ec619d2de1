#include "graph/passes.h"

namespace ballast::graph {

Graph separate_results(const Graph& graph) {
  // First come copies of inputs, states and constants: they must read a state before a node
  // overwrites it in place. Copies of node results come last.
  Rewrite rewrite(graph);
  Graph& result = rewrite.graph();
  std::vector<ValueId> outputs(graph.outputs().size(), kNoValue);
  std::vector<ValueId> updates(graph.states().size(), kNoValue);
  auto copy = [&](ValueId old_value) {
    return result.add_node("identity", {}, {rewrite.map(old_value)}).at(0);
  };
  auto is_node = [&](ValueId id) { return graph.value(id).kind == ValueKind::kNode; };
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!is_node(graph.outputs()[i])) outputs[i] = copy(graph.outputs()[i]);
  }
  for (size_t i = 0; i < updates.size(); ++i) {
    const ValueId id = graph.updates()[i];
    if (id == graph.states()[i]) continue;  // unchanged
    if (id != kNoValue && !is_node(id)) updates[i] = copy(id);
  }
  for (const Node& node : graph.nodes()) rewrite.keep(node);

  std::vector<bool> is_taken(graph.value_count());
  const std::vector<size_t> producers = graph.producers();
  auto own = [&](ValueId id) {
    const bool is_alias = graph.nodes()[producers[id]].op->is_alias;
    const bool needs_copy = is_taken[id] || is_alias;
    is_taken[id] = true;
    return needs_copy ? copy(id) : rewrite.map(id);
  };
  for (size_t i = 0; i < updates.size(); ++i) {
    const ValueId id = graph.updates()[i];
    if (updates[i] == kNoValue && id != kNoValue && id != graph.states()[i]) updates[i] = own(id);
    if (updates[i] != kNoValue) result.set_update(result.states()[i], updates[i]);
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i] == kNoValue) outputs[i] = own(graph.outputs()[i]);
  }
  result.set_outputs(std::move(outputs));
  return std::move(result);
}

}  // namespace ballast::graph
