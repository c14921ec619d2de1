#include "graph/ops/fused.h"
#include "graph/passes.h"

#include <algorithm>

namespace ballast::graph {

namespace {

constexpr size_t kMostSteps = 48;
constexpr size_t kMostInputs = 16;  // distinct operands of one kernel

// Groups are numbered by their last node. A node joins its readers' group when all that read it are
// in one group over the same shape; walking backwards, readers are grouped before what they read.
class Groups {
 public:
  explicit Groups(const Graph& graph)
      : graph_(graph),
        group_(graph.nodes().size()),
        readers_(graph.value_count()),
        is_result_(graph.value_count()),
        members_(graph.nodes().size()) {
    for (size_t i = 0; i < graph.nodes().size(); ++i) {
      for (ValueId id : graph.nodes()[i].inputs) readers_[id].push_back(i);
    }
    for (ValueId id : graph.outputs()) is_result_[id] = true;
    for (ValueId id : graph.updates()) {
      if (id != kNoValue) is_result_[id] = true;
    }
    for (size_t i = graph.nodes().size(); i-- > 0;) {
      group_[i] = group_for(i);
      members_[group_[i]].insert(members_[group_[i]].begin(), i);
    }
  }

  size_t group(size_t node) const { return group_[node]; }
  const std::vector<size_t>& members(size_t group) const { return members_[group]; }

 private:
  size_t group_for(size_t i) const {
    const Node& node = graph_.nodes()[i];
    if (!node.op->is_pointwise || node.op->name == "identity") return i;
    const ValueId id = node.outputs[0];
    if (is_result_[id] || readers_[id].empty()) return i;
    const size_t candidate = group_[readers_[id][0]];
    const Node& last = graph_.nodes()[candidate];
    const bool fits = last.op->is_pointwise && last.op->name != "identity" &&
                      graph_.value(last.outputs[0]).type.shape == graph_.value(id).type.shape &&
                      members_[candidate].size() < kMostSteps &&
                      std::all_of(readers_[id].begin(), readers_[id].end(),
                                  [&](size_t reader) { return group_[reader] == candidate; }) &&
                      operands_with(candidate, node) <= kMostInputs;
    return fits ? candidate : i;
  }

  size_t operands_with(size_t group, const Node& extra) const {
    std::vector<ValueId> operands = extra.inputs;
    for (size_t member : members_[group]) {
      const Node& node = graph_.nodes()[member];
      operands.insert(operands.end(), node.inputs.begin(), node.inputs.end());
    }
    std::sort(operands.begin(), operands.end());
    return std::unique(operands.begin(), operands.end()) - operands.begin();
  }

  const Graph& graph_;
  std::vector<size_t> group_;
  std::vector<std::vector<size_t>> readers_;
  std::vector<bool> is_result_;
  std::vector<std::vector<size_t>> members_;
};

void add_fused(const Graph& graph, const std::vector<size_t>& members, Rewrite& rewrite) {
  std::vector<ValueId> inputs;
  std::string program, where;
  std::vector<std::pair<ValueId, size_t>> steps;
  for (size_t member : members) {
    const Node& node = graph.nodes()[member];
    std::vector<std::string> args;
    for (ValueId id : node.inputs) {
      auto step = std::find_if(steps.begin(), steps.end(), [&](auto& s) { return s.first == id; });
      if (step != steps.end()) {
        args.push_back(fmt::format("s{}", step->second));
        continue;
      }
      auto input = std::find(inputs.begin(), inputs.end(), id);
      args.push_back(fmt::format("i{}", input - inputs.begin()));
      if (input == inputs.end()) inputs.push_back(id);
    }
    program += (program.empty() ? "" : ";") +
               fused_step_text(node.op->name, args, graph.value(node.outputs[0]).type.dtype);
    steps.emplace_back(node.outputs[0], steps.size());
    if (!node.where.empty()) where = node.where;
  }
  const std::vector<int64_t> outputs{static_cast<int64_t>(steps.size()) - 1};
  const auto& results = rewrite.graph().add_node(
      "fused", {{"program", program}, {"outputs", outputs}}, rewrite.map(inputs), where);
  rewrite.replace(steps.back().first, results[0]);
}

}  // namespace

Graph fuse_pointwise(const Graph& graph) {
  const Groups groups(graph);
  Rewrite rewrite(graph);
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    if (groups.group(i) != i) continue;
    const auto& members = groups.members(i);
    if (members.size() == 1) {
      rewrite.keep(graph.nodes()[i]);
    } else {
      add_fused(graph, members, rewrite);
    }
  }
  return rewrite.finish();
}

}  // namespace ballast::graph
