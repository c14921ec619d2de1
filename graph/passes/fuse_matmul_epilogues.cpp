#include "graph/passes.h"

namespace ballast::graph {

namespace {

// A matmul and the nodes after it that become its epilogue.
struct Fusion {
  Node matmul;                  // with the epilogue's attributes and inputs
  std::vector<size_t> members;  // the fused nodes in order; the last one's result is the result
};

class Matcher {
 public:
  explicit Matcher(const Graph& graph)
      : graph_(graph), uses_(graph.use_counts()), readers_(graph.value_count()) {
    for (size_t i = 0; i < graph.nodes().size(); ++i) {
      for (ValueId id : graph.nodes()[i].inputs) readers_[id].push_back(i);
    }
  }

  // Leaves alone what another fusion `is_swallowed` by: a sum of two products goes to one of them.
  Fusion match(size_t matmul, const std::vector<bool>& is_swallowed) const {
    Fusion fusion{graph_.nodes()[matmul], {matmul}};
    if (has_epilogue(fusion)) return fusion;
    while (only_reader(result(fusion)) != graph_.nodes().size()) {
      const size_t next = only_reader(result(fusion));
      if (is_swallowed[next]) break;
      if (!take_bias(fusion, next) && !take_activation(fusion, next) &&
          !take_residual(fusion, next)) {
        break;
      }
      fusion.members.push_back(next);
    }
    return fusion;
  }

 private:
  ValueId result(const Fusion& fusion) const {
    return graph_.nodes()[fusion.members.back()].outputs[0];
  }

  static bool has_activation(const Fusion& fusion) {
    return string_attr(fusion.matmul.attrs, "activation") != "none";
  }
  static bool has_residual(const Fusion& fusion) {
    return int_attr(fusion.matmul.attrs, "has_residual") != 0;
  }
  static bool has_bias(const Fusion& fusion) {
    return int_attr(fusion.matmul.attrs, "has_bias") != 0;
  }
  static bool has_epilogue(const Fusion& fusion) {
    return has_activation(fusion) || has_residual(fusion) || has_bias(fusion);
  }

  // Between bf16 or f16 ops results are rounded; an epilogue would round once instead of twice.
  bool is_f32(const Fusion& fusion) const {
    return graph_.value(result(fusion)).type.dtype == DType::kF32;
  }

  // The single node that reads `id` once and nothing else does; else nodes().size().
  size_t only_reader(ValueId id) const {
    return uses_[id] == 1 && readers_[id].size() == 1 ? readers_[id][0] : graph_.nodes().size();
  }

  // The other operand of an add that gives `fusion`'s type; else kNoValue.
  ValueId added_operand(const Fusion& fusion, size_t add) const {
    const Node& node = graph_.nodes()[add];
    const TensorType& type = graph_.value(result(fusion)).type;
    const bool fits = node.op->name == "add" && graph_.value(node.outputs[0]).type == type;
    return fits && is_f32(fusion) ? node.inputs[node.inputs[0] == result(fusion)] : kNoValue;
  }

  bool take_bias(Fusion& fusion, size_t add) const {
    const ValueId bias = added_operand(fusion, add);
    if (has_epilogue(fusion) || bias == kNoValue) return false;
    const Shape& shape = graph_.value(result(fusion)).type.shape;
    if (graph_.value(bias).type.shape != Shape{shape.back()}) return false;
    fusion.matmul.attrs["has_bias"] = int64_t{1};
    fusion.matmul.inputs.push_back(bias);
    return true;
  }

  bool take_activation(Fusion& fusion, size_t next) const {
    const Node& node = graph_.nodes()[next];
    if (has_activation(fusion) || has_residual(fusion)) return false;
    if (node.op->name == "relu_grad") {
      const bool fits = node.inputs[0] == result(fusion) && node.inputs[1] != result(fusion) &&
                        graph_.value(node.inputs[1]).type == graph_.value(result(fusion)).type;
      if (!fits) return false;
      fusion.matmul.inputs.push_back(node.inputs[1]);
    } else if (!kernels::is_matmul_activation(node.op->name) ||
               (node.op->name != "relu" && !is_f32(fusion))) {
      return false;  // rounding before relu or after it is the same
    }
    fusion.matmul.attrs["activation"] = node.op->name;
    return true;
  }

  bool take_residual(Fusion& fusion, size_t add) const {
    const ValueId residual = added_operand(fusion, add);
    const bool is_taken =
        has_residual(fusion) || string_attr(fusion.matmul.attrs, "activation") == "relu_grad";
    if (is_taken || residual == kNoValue) return false;
    if (graph_.value(residual).type != graph_.value(result(fusion)).type) return false;
    fusion.matmul.attrs["has_residual"] = int64_t{1};
    fusion.matmul.inputs.push_back(residual);
    return true;
  }

  const Graph& graph_;
  std::vector<uint32_t> uses_;
  std::vector<std::vector<size_t>> readers_;
};

}  // namespace

Graph fuse_matmul_epilogues(const Graph& graph) {
  const Matcher matcher(graph);
  const size_t count = graph.nodes().size();
  // By node: the fusion that ends there, where all its operands exist.
  std::vector<std::unique_ptr<Fusion>> ends(count);
  std::vector<bool> is_swallowed(count);
  for (size_t i = 0; i < count; ++i) {
    if (graph.nodes()[i].op->name != "matmul") continue;
    auto fusion = std::make_unique<Fusion>(matcher.match(i, is_swallowed));
    for (size_t member : fusion->members) is_swallowed[member] = true;
    ends[fusion->members.back()] = std::move(fusion);
  }
  Rewrite rewrite(graph);
  for (size_t i = 0; i < count; ++i) {
    if (ends[i]) {
      const Node& node = ends[i]->matmul;
      const auto& outputs =
          rewrite.graph().add_node("matmul", node.attrs, rewrite.map(node.inputs), node.where);
      rewrite.replace(graph.nodes()[i].outputs[0], outputs[0]);
    } else if (!is_swallowed[i]) {
      rewrite.keep(graph.nodes()[i]);
    }
  }
  return rewrite.finish();
}

}  // namespace ballast::graph
