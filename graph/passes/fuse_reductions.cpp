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
    return fuse_pairs(
        graph_, [&](const Node& node) { return chain_before(node); },
        [&](const Node& before, const Node& node, Rewrite& rewrite) {
          add_fused(before, node, rewrite);
        });
  }

 private:
  // The pointwise node that nothing but this reduction reads.
  std::optional<size_t> chain_before(const Node& node) const {
    if (!is_reduction(node)) return std::nullopt;
    const size_t producer = producers_[node.inputs[0]];
    if (producer == graph_.nodes().size() || uses_[node.inputs[0]] != 1) return std::nullopt;
    const Node& chain = graph_.nodes()[producer];
    if (!is_pointwise_step(chain) || chain.outputs.size() != 1) return std::nullopt;
    const TensorType& whole = graph_.value(node.inputs[0]).type;
    if (is_narrow_float(whole.dtype)) return std::nullopt;
    const std::vector<int64_t> axes = reduced_axes(node.attrs, whole.shape.size());
    const bool fits = std::all_of(chain.inputs.begin(), chain.inputs.end(), [&](ValueId id) {
      return kernels::is_fusable_before_reduction(graph_.value(id).type.shape, whole.shape, axes);
    });
    return fits ? std::optional(producer) : std::nullopt;
  }

  FusedText text_of(const Node& chain) const {
    if (chain.op->name == "fused") {
      return {string_attr(chain.attrs, "program"), chain.where, chain.inputs};
    }
    return fused_text(graph_, {producers_[chain.outputs[0]]}, [](const Node&) { return false; });
  }

  void add_fused(const Node& chain, const Node& node, Rewrite& rewrite) const {
    const FusedText text = text_of(chain);
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
