#include "graph/passes.h"

namespace ballast::graph {

namespace {

bool is_op(const Node& node, const char* name) { return node.op->name == name; }

// The value that `node` repeats unchanged, or kNoValue. Works on the rewritten graph's inputs.
ValueId repeated_input(const Graph& graph, const Node& node, const std::vector<ValueId>& inputs,
                       const TensorType& result) {
  const bool only_moves = is_op(node, "reshape") || is_op(node, "broadcast_to") ||
                          is_op(node, "cast") || is_op(node, "identity");
  if (only_moves && graph.value(inputs[0]).type == result) return inputs[0];
  if (is_op(node, "transpose")) {
    const auto& perm = ints_attr(node.attrs, "perm");
    for (size_t i = 0; i < perm.size(); ++i) {
      if (perm[i] != static_cast<int64_t>(i)) return kNoValue;
    }
    return inputs[0];
  }
  return kNoValue;
}

// If `id` is made by a transpose of a matrix, that matrix.
ValueId transposed_matrix(const Graph& graph, const std::vector<size_t>& producers, ValueId id) {
  if (id >= producers.size() || producers[id] >= graph.nodes().size()) return kNoValue;
  const Node& node = graph.nodes()[producers[id]];
  if (!is_op(node, "transpose") || node.inputs.size() != 1) return kNoValue;
  return ints_attr(node.attrs, "perm") == std::vector<int64_t>{1, 0} ? node.inputs[0] : kNoValue;
}

}  // namespace

Graph simplify(const Graph& graph) {
  Rewrite rewrite(graph);
  Graph& result = rewrite.graph();
  for (const Node& old : graph.nodes()) {
    Node node = old;
    node.inputs = rewrite.map(old.inputs);
    const ValueId same =
        repeated_input(result, node, node.inputs, graph.value(old.outputs[0]).type);
    if (same != kNoValue) {
      rewrite.replace(old.outputs[0], same);
      continue;
    }
    const std::vector<size_t> producers = result.producers();
    if (is_op(node, "reshape") && producers[node.inputs[0]] < result.nodes().size()) {
      const Node& before = result.nodes()[producers[node.inputs[0]]];
      if (is_op(before, "reshape")) node.inputs[0] = before.inputs[0];
    }
    if (is_op(node, "matmul")) {
      for (size_t i : {size_t{0}, size_t{1}}) {
        const ValueId matrix = transposed_matrix(result, producers, node.inputs[i]);
        if (matrix == kNoValue) continue;
        auto& flag = std::get<int64_t>(node.attrs.at(i == 0 ? "transpose_a" : "transpose_b"));
        flag = !flag;
        node.inputs[i] = matrix;
      }
    }
    const auto outputs = result.add_node(node.op->name, node.attrs, node.inputs, node.where);
    for (size_t i = 0; i < outputs.size(); ++i) rewrite.replace(old.outputs[i], outputs[i]);
  }
  return rewrite.finish();
}

}  // namespace ballast::graph
