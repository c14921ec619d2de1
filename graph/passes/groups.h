// Nodes that become one kernel; what the fusing passes share.
#pragma once

#include "graph/graph.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace ballast::graph {

// Groups are numbered by their last node, whose result is the only one that others read. A node
// joins its readers' group when all that read it are in one group, and the pass lets it; walking
// backwards, readers are grouped before what they read.
class Groups {
 public:
  // Whether `node` may join a group that ends in `last`.
  using MayJoin = std::function<bool(const Node& node, const Node& last)>;
  Groups(const Graph& graph, const MayJoin& may_join);

  size_t group(size_t node) const { return group_[node]; }
  // In the graph's order.
  const std::vector<size_t>& members(size_t group) const { return members_[group]; }

 private:
  size_t group_for(size_t i, const MayJoin& may_join) const;
  size_t operands_with(size_t group, const Node& extra) const;

  const Graph& graph_;
  std::vector<size_t> group_;
  std::vector<std::vector<size_t>> readers_;
  std::vector<bool> is_result_;
  std::vector<std::vector<size_t>> members_;
};

// A group as the text of the "fused" ops (graph/ops/fused.h).
struct FusedText {
  std::string program, where;
  std::vector<ValueId> inputs;
  int64_t last_step = 0;
  ValueId result = kNoValue;
};
// Nodes for which `is_alias` holds stand for what they read.
FusedText fused_text(const Graph& graph, const std::vector<size_t>& members,
                     const std::function<bool(const Node&)>& is_alias);

// A "fused" node, or a pointwise one that computes.
bool is_pointwise_step(const Node& node);

// The graph in which nodes take in one before them, which nothing else reads: `taken` gives its
// number, if there is one, and `add_fused` writes both as one node.
Graph fuse_pairs(
    const Graph& graph, const std::function<std::optional<size_t>(const Node& node)>& taken,
    const std::function<void(const Node& before, const Node& node, Rewrite&)>& add_fused);

}  // namespace ballast::graph
