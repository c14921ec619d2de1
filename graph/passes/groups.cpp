#include "graph/passes/groups.h"

#include "graph/ops/fused.h"

#include <algorithm>
#include <map>

namespace ballast::graph {

namespace {

constexpr size_t kMostSteps = 48;
constexpr size_t kMostInputs = 16;  // distinct operands of one kernel

}  // namespace

Groups::Groups(const Graph& graph, const MayJoin& may_join)
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
    group_[i] = group_for(i, may_join);
    members_[group_[i]].insert(members_[group_[i]].begin(), i);
  }
}

size_t Groups::group_for(size_t i, const MayJoin& may_join) const {
  const Node& node = graph_.nodes()[i];
  if (node.outputs.size() != 1) return i;
  const ValueId id = node.outputs[0];
  if (is_result_[id] || readers_[id].empty()) return i;
  const size_t candidate = group_[readers_[id][0]];
  const bool fits = may_join(node, graph_.nodes()[candidate]) &&
                    members_[candidate].size() < kMostSteps &&
                    std::all_of(readers_[id].begin(), readers_[id].end(),
                                [&](size_t reader) { return group_[reader] == candidate; }) &&
                    operands_with(candidate, node) <= kMostInputs;
  return fits ? candidate : i;
}

size_t Groups::operands_with(size_t group, const Node& extra) const {
  std::vector<ValueId> operands = extra.inputs;
  for (size_t member : members_[group]) {
    const Node& node = graph_.nodes()[member];
    operands.insert(operands.end(), node.inputs.begin(), node.inputs.end());
  }
  std::sort(operands.begin(), operands.end());
  return std::unique(operands.begin(), operands.end()) - operands.begin();
}

FusedText fused_text(const Graph& graph, const std::vector<size_t>& members,
                     const std::function<bool(const Node&)>& is_alias) {
  FusedText text;
  std::map<ValueId, std::string> names;
  int64_t steps = 0;
  for (size_t member : members) {
    const Node& node = graph.nodes()[member];
    std::vector<std::string> args;
    for (ValueId id : node.inputs) {
      if (names.count(id) == 0) {
        names[id] = fmt::format("i{}", text.inputs.size());
        text.inputs.push_back(id);
      }
      args.push_back(names[id]);
    }
    text.result = node.outputs[0];
    if (!node.where.empty()) text.where = node.where;
    if (is_alias(node)) {
      names[text.result] = args[0];
      continue;
    }
    const DType dtype = graph.value(text.result).type.dtype;
    text.program += (text.program.empty() ? "" : ";") + fused_step_text(node.op->name, args, dtype);
    text.last_step = steps++;
    names[text.result] = fmt::format("s{}", text.last_step);
  }
  return text;
}

bool is_pointwise_step(const Node& node) {
  return node.op->name == "fused" || (node.op->is_pointwise && node.op->name != "identity");
}

Graph fuse_pairs(
    const Graph& graph, const std::function<std::optional<size_t>(const Node& node)>& taken,
    const std::function<void(const Node& before, const Node& node, Rewrite&)>& add_fused) {
  const size_t count = graph.nodes().size();
  std::vector<size_t> before(count, count);  // by node: what it takes in
  std::vector<bool> is_taken(count);
  for (size_t i = 0; i < count; ++i) {
    const auto number = taken(graph.nodes()[i]);
    if (!number) continue;
    before[i] = *number;
    is_taken[*number] = true;
  }
  Rewrite rewrite(graph);
  for (size_t i = 0; i < count; ++i) {
    const Node& node = graph.nodes()[i];
    if (before[i] != count) {
      add_fused(graph.nodes()[before[i]], node, rewrite);
    } else if (!is_taken[i]) {
      rewrite.keep(node);
    }
  }
  return rewrite.finish();
}

}  // namespace ballast::graph
