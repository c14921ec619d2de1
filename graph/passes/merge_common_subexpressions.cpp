#include "graph/effect.h"
#include "graph/passes.h"
#include "graph/text.h"

#include <map>
#include <tuple>

namespace ballast::graph {

namespace {

// Floats as such would not do: 0.0 == -0.0, and no order has a place for NaN.
std::map<std::string, std::string> texts_of(const Attrs& attrs) {
  std::map<std::string, std::string> texts;
  for (const auto& [name, value] : attrs) texts[name] = attr_text(value);
  return texts;
}

}  // namespace

Graph merge_common_subexpressions(const Graph& graph) {
  Rewrite rewrite(graph);
  std::map<std::tuple<int, Shape, std::vector<uint8_t>>, ValueId> constants;
  for (ValueId id = 0; id < graph.value_count(); ++id) {
    const Value& value = graph.value(id);
    if (value.kind != ValueKind::kConstant) continue;
    auto key = std::tuple(static_cast<int>(value.type.dtype), value.type.shape, *value.data);
    const auto [found, is_new] = constants.emplace(std::move(key), rewrite.map(id));
    if (!is_new) rewrite.replace(id, found->second);
  }
  std::map<std::tuple<const OpDef*, std::map<std::string, std::string>, std::vector<ValueId>>,
           std::vector<ValueId>>
      nodes;
  for (const Node& node : graph.nodes()) {
    if (runs_on_host(node)) {
      rewrite.keep(node);
      continue;
    }
    auto key = std::tuple(node.op, texts_of(node.attrs), rewrite.map(node.inputs));
    auto found = nodes.find(key);
    if (found == nodes.end()) {
      rewrite.keep(node);
      nodes.emplace(std::move(key), rewrite.map(node.outputs));
      continue;
    }
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      rewrite.replace(node.outputs[i], found->second[i]);
    }
  }
  return rewrite.finish();
}

}  // namespace ballast::graph
