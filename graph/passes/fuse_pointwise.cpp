#include "graph/passes.h"
#include "graph/passes/groups.h"

namespace ballast::graph {

namespace {

bool is_step(const Node& node) { return node.op->is_pointwise && node.op->name != "identity"; }

}  // namespace

Graph fuse_pointwise(const Graph& graph) {
  const auto shape_of = [&](const Node& node) { return graph.value(node.outputs[0]).type.shape; };
  const Groups groups(graph, [&](const Node& node, const Node& last) {
    return is_step(node) && is_step(last) && shape_of(node) == shape_of(last);
  });
  Rewrite rewrite(graph);
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    if (groups.group(i) != i) continue;
    const auto& members = groups.members(i);
    if (members.size() == 1) {
      rewrite.keep(graph.nodes()[i]);
      continue;
    }
    const FusedText text = fused_text(graph, members, [](const Node&) { return false; });
    const auto& results = rewrite.graph().add_node(
        "fused", {{"program", text.program}, {"outputs", std::vector<int64_t>{text.last_step}}},
        rewrite.map(text.inputs), text.where);
    rewrite.replace(text.result, results[0]);
  }
  return rewrite.finish();
}

}  // namespace ballast::graph
