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

  Fusion match(size_t matmul) const {
    Fusion fusion{graph_.nodes()[matmul], {matmul}};
    if (string_attr(fusion.matmul.attrs, "activation") != "none") return fusion;
    const size_t none = graph_.nodes().size();
    size_t next = only_reader(result(fusion));
    if (next != none && !int_attr(fusion.matmul.attrs, "has_bias") && take_bias(fusion, next)) {
      next = only_reader(result(fusion));
    }
    if (next != none) take_activation(fusion, next);
    return fusion;
  }

 private:
  ValueId result(const Fusion& fusion) const {
    return graph_.nodes()[fusion.members.back()].outputs[0];
  }

  // The single node that reads `id` once and nothing else does; else nodes().size().
  size_t only_reader(ValueId id) const {
    return uses_[id] == 1 && readers_[id].size() == 1 ? readers_[id][0] : graph_.nodes().size();
  }

  bool take_bias(Fusion& fusion, size_t add) const {
    const Node& node = graph_.nodes()[add];
    const TensorType& type = graph_.value(result(fusion)).type;
    if (node.op->name != "add" || graph_.value(node.outputs[0]).type != type) return false;
    if (type.dtype != DType::kF32) return false;  // the sum would be rounded once instead of twice
    const ValueId bias = node.inputs[node.inputs[0] == result(fusion)];
    if (graph_.value(bias).type.shape != Shape{type.shape.back()}) return false;
    fusion.matmul.attrs["has_bias"] = int64_t{1};
    fusion.matmul.inputs.push_back(bias);
    fusion.members.push_back(add);
    return true;
  }

  void take_activation(Fusion& fusion, size_t next) const {
    const Node& node = graph_.nodes()[next];
    if (node.op->name == "relu") {
      fusion.matmul.attrs["activation"] = std::string("relu");
    } else if (node.op->name == "relu_grad" && node.inputs[0] == result(fusion) &&
               graph_.value(node.inputs[1]).type == graph_.value(result(fusion)).type) {
      fusion.matmul.attrs["activation"] = std::string("relu_grad");
      fusion.matmul.inputs.push_back(node.inputs[1]);
    } else {
      return;
    }
    fusion.members.push_back(next);
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
    auto fusion = std::make_unique<Fusion>(matcher.match(i));
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
