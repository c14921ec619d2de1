#include "graph/passes.h"

#include <unordered_map>

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

// The node that makes a value of the rewritten graph, as a number; kept while the graph grows.
using MadeBy = std::unordered_map<ValueId, size_t>;

const Node* producer(const Graph& graph, const MadeBy& made_by, ValueId id) {
  const auto found = made_by.find(id);
  return found == made_by.end() ? nullptr : &graph.nodes()[found->second];
}

// If `node` transposes a matrix, that matrix.
ValueId transposed_matrix(const Node* node) {
  if (node == nullptr || !is_op(*node, "transpose")) return kNoValue;
  return ints_attr(node->attrs, "perm") == std::vector<int64_t>{1, 0} ? node->inputs[0] : kNoValue;
}

// `id` in another shape; the value that had it already, if there is one.
ValueId reshaped(Graph& graph, const MadeBy& made_by, ValueId id, const Shape& shape,
                 const std::string& where) {
  const Node* before = producer(graph, made_by, id);
  if (before != nullptr && is_op(*before, "reshape")) id = before->inputs[0];
  if (graph.value(id).type.shape == shape) return id;
  return graph.add_node("reshape", {{"shape", shape}}, {id}, where)[0];
}

// A reshape of a w that keeps the columns is reshape(a) w: the product gets the shape of what reads
// it, which may then join it.
void move_before_product(Graph& graph, const MadeBy& made_by, const Shape& shape, Node& node) {
  const Node* matmul = producer(graph, made_by, node.inputs[0]);
  if (matmul == nullptr || !is_op(*matmul, "matmul") || matmul->inputs.size() != 2) return;
  const Shape& a = graph.value(matmul->inputs[0]).type.shape;
  const Shape& product = graph.value(node.inputs[0]).type.shape;
  const bool is_one_product = a.size() == 2 && product.size() == 2;
  const bool keeps_columns =
      shape.size() >= 2 && shape.back() == product.back() && shape.back() > 0;
  if (!is_one_product || !keeps_columns || int_attr(matmul->attrs, "transpose_a") != 0) return;
  Shape of_a = shape;
  of_a.back() = a.back();
  node = *matmul;
  node.inputs[0] = reshaped(graph, made_by, node.inputs[0], of_a, node.where);
}

}  // namespace

Graph simplify(const Graph& graph) {
  Rewrite rewrite(graph);
  Graph& result = rewrite.graph();
  MadeBy made_by;
  const std::vector<uint32_t> uses = graph.use_counts();
  for (const Node& old : graph.nodes()) {
    Node node = old;
    node.inputs = rewrite.map(old.inputs);
    const ValueId same =
        repeated_input(result, node, node.inputs, graph.value(old.outputs[0]).type);
    if (same != kNoValue) {
      rewrite.replace(old.outputs[0], same);
      continue;
    }
    if (is_op(node, "reshape")) {
      const Node* before = producer(result, made_by, node.inputs[0]);
      if (before != nullptr && is_op(*before, "reshape")) node.inputs[0] = before->inputs[0];
      const Shape& shape = graph.value(old.outputs[0]).type.shape;
      if (uses[old.inputs[0]] == 1) move_before_product(result, made_by, shape, node);
    } else if (is_op(node, "matmul")) {
      for (size_t i : {size_t{0}, size_t{1}}) {
        const ValueId matrix = transposed_matrix(producer(result, made_by, node.inputs[i]));
        if (matrix == kNoValue) continue;
        auto& flag = std::get<int64_t>(node.attrs.at(i == 0 ? "transpose_a" : "transpose_b"));
        flag = !flag;
        node.inputs[i] = matrix;
      }
    }
    const auto outputs =
        result.add_node(node.op->name, node.attrs, node.inputs, node.where, node.regions);
    for (size_t i = 0; i < outputs.size(); ++i) {
      rewrite.replace(old.outputs[i], outputs[i]);
      made_by[outputs[i]] = result.nodes().size() - 1;
    }
  }
  return rewrite.finish();
}

}  // namespace ballast::graph
