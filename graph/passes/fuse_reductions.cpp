#include "graph/ops/reduce.h"
#include "graph/passes.h"
#include "graph/passes/groups.h"

#include <algorithm>
#include <optional>

namespace ballast::graph {

namespace {

bool is_reduction(const Node& node) { return node.op->name.compare(0, 7, "reduce_") == 0; }

class Fuser {
 public:
  explicit Fuser(const Graph& graph)
      : graph_(graph), uses_(graph.use_counts()), producers_(graph.producers()) {}

  Graph run() {
    const size_t count = graph_.nodes().size();
    std::vector<size_t> chains(count, count);  // by node: what it takes in
    std::vector<bool> is_taken(count);
    for (size_t i = 0; i < count; ++i) {
      const auto chain = chain_before(graph_.nodes()[i]);
      if (!chain) continue;
      chains[i] = *chain;
      is_taken[*chain] = true;
    }
    Rewrite rewrite(graph_);
    for (size_t i = 0; i < count; ++i) {
      const Node& node = graph_.nodes()[i];
      if (chains[i] != count) {
        add_fused(chains[i], node, rewrite);
      } else if (!is_taken[i]) {
        rewrite.keep(node);
      }
    }
    return rewrite.finish();
  }

 private:
  // The pointwise node that nothing but this reduction reads.
  std::optional<size_t> chain_before(const Node& node) const {
    if (!is_reduction(node)) return std::nullopt;
    const size_t producer = producers_[node.inputs[0]];
    if (producer == graph_.nodes().size() || uses_[node.inputs[0]] != 1) return std::nullopt;
    const Node& chain = graph_.nodes()[producer];
    const bool is_step = chain.op->is_pointwise && chain.op->name != "identity";
    if (!is_step && chain.op->name != "fused") return std::nullopt;
    const TensorType& whole = graph_.value(node.inputs[0]).type;
    if (chain.outputs.size() != 1 || is_narrow_float(whole.dtype)) return std::nullopt;
    const std::vector<int64_t> axes = reduced_axes(node.attrs, whole.shape.size());
    const bool fits = std::all_of(chain.inputs.begin(), chain.inputs.end(), [&](ValueId id) {
      return kernels::is_fusable_before_reduction(graph_.value(id).type.shape, whole.shape, axes);
    });
    return fits ? std::optional(producer) : std::nullopt;
  }

  void add_fused(size_t chain, const Node& node, Rewrite& rewrite) const {
    const Node& before = graph_.nodes()[chain];
    FusedText text = fused_text(graph_, {chain}, [](const Node&) { return false; });
    if (before.op->name == "fused") {
      text.program = string_attr(before.attrs, "program");
      text.inputs = before.inputs;
    }
    const auto& results = rewrite.graph().add_node("fused_reduce",
                                                   {{"program", text.program},
                                                    {"reduction", node.op->name},
                                                    {"axes", node.attrs.at("axes")},
                                                    {"keep_dims", node.attrs.at("keep_dims")}},
                                                   rewrite.map(text.inputs), node.where);
    rewrite.replace(node.outputs[0], results[0]);
  }

  const Graph& graph_;
  std::vector<uint32_t> uses_;
  std::vector<size_t> producers_;
};

}  // namespace

Graph fuse_reductions(const Graph& graph) { return Fuser(graph).run(); }

}  // namespace ballast::graph
