#include "graph/passes.h"
#include "graph/passes/groups.h"

#include <algorithm>
#include <optional>
#include <set>

namespace ballast::graph {

namespace {

bool is_reduction(const Node& node) { return kernels::is_row_reduction(node.op->name); }

bool is_row_op(const Node& node) { return kernels::is_row_op(node.op->name); }

// The shape of the rows that the node passes over, where fused rows can.
std::optional<Shape> rows_of(const Graph& graph, const Node& node) {
  if (!is_row_op(node)) return std::nullopt;
  const TensorType& type = graph.value(node.inputs[0]).type;
  const auto rank = static_cast<int64_t>(type.shape.size());
  const bool is_float = type.dtype == DType::kF32 || is_narrow_float(type.dtype);
  if (!is_float || !kernels::are_fusable_rows(type.shape)) return std::nullopt;
  std::vector<int64_t> axes;
  if (is_reduction(node)) {
    axes = ints_attr(node.attrs, "axes");
  } else {
    axes.push_back(int_attr(node.attrs, "axis"));
  }
  if (axes.empty() && rank == 1) axes.push_back(0);
  const bool is_last = axes.size() == 1 && (axes[0] == -1 || axes[0] == rank - 1);
  return is_last ? std::optional(type.shape) : std::nullopt;
}

// Fuses what passes over rows of one shape.
class RowFuser {
 public:
  RowFuser(const Graph& graph, Shape rows)
      : graph_(graph),
        rows_(std::move(rows)),
        producers_(graph.producers()),
        uses_(graph.use_counts()),
        alias_uses_(graph.value_count()) {
    line_ = rows_;
    line_.back() = 1;
    for (const Node& node : graph.nodes()) {
      if (is_alias(node)) ++alias_uses_[node.inputs[0]];
    }
  }

  Graph run() {
    const Groups groups(graph_, [&](const Node& node, const Node& last) {
      return is_end(last) && (is_step(node) || is_alias(node));
    });
    Rewrite rewrite(graph_);
    std::set<size_t> fused;  // into a later node
    std::vector<std::optional<FusedText>> texts(graph_.nodes().size());
    for (size_t i = 0; i < graph_.nodes().size(); ++i) {
      if (groups.group(i) != i) continue;
      const std::vector<size_t> members = without_foreign_aliases(groups.members(i));
      texts[i] = text_of(members);
      if (texts[i]) fused.insert(members.begin(), members.end() - 1);
    }
    for (size_t i = 0; i < graph_.nodes().size(); ++i) {
      if (texts[i]) {
        add_fused(*texts[i], graph_.nodes()[i], rewrite);
      } else if (fused.count(i) == 0) {
        rewrite.keep(graph_.nodes()[i]);
      }
    }
    return rewrite.finish();
  }

 private:
  const Shape& shape_of(ValueId id) const { return graph_.value(id).type.shape; }

  // What may be the last of a group: a pass over these rows, or a step with such results.
  bool is_end(const Node& node) const {
    if (is_row_op(node)) return rows_of(graph_, node) == rows_;
    if (!node.op->is_pointwise || node.op->name == "identity") return false;
    const Shape& shape = shape_of(node.outputs[0]);
    return (shape == rows_ || shape == line_) &&
           std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId id) {
             return kernels::is_fusable_row_input(shape_of(id), rows_);
           });
  }

  // A total without its axis would broadcast along another one: only aliases may read it, unless it
  // is the only one.
  bool is_step(const Node& node) const {
    if (!is_end(node)) return false;
    const ValueId result = node.outputs[0];
    const Shape& shape = shape_of(result);
    return shape == rows_ || shape == line_ || shape.empty() ||
           uses_[result] == alias_uses_[result];
  }

  // What gives a row's total its axis back, or repeats it along the row: so do steps.
  bool is_alias(const Node& node) const {
    if (node.op->name != "reshape" && node.op->name != "broadcast_to") return false;
    const size_t producer = producers_[node.inputs[0]];
    if (producer == graph_.nodes().size()) return false;
    const Node& from = graph_.nodes()[producer];
    const Shape& shape = shape_of(node.outputs[0]);
    if (node.op->name == "broadcast_to") return shape_of(node.inputs[0]) == line_ && shape == rows_;
    return shape == line_ && is_reduction(from) && rows_of(graph_, from) == rows_;
  }

  // Aliases of what is no member are nodes of their own.
  std::vector<size_t> without_foreign_aliases(const std::vector<size_t>& members) const {
    std::vector<size_t> kept;
    for (size_t member : members) {
      const Node& node = graph_.nodes()[member];
      const bool is_foreign = is_alias(node) && !std::binary_search(kept.begin(), kept.end(),
                                                                    producers_[node.inputs[0]]);
      if (!is_foreign) kept.push_back(member);
    }
    return kept;
  }

  // None where there is nothing to gain or the inputs do not tell the rows.
  std::optional<FusedText> text_of(const std::vector<size_t>& members) const {
    const auto count = [&](auto predicate) {
      return std::count_if(members.begin(), members.end(),
                           [&](size_t i) { return predicate(graph_.nodes()[i]); });
    };
    const auto aliases = count([&](const Node& node) { return is_alias(node); });
    if (count(is_row_op) == 0 || static_cast<int64_t>(members.size()) - aliases < 2) {
      return std::nullopt;
    }
    FusedText text = fused_text(graph_, members, [&](const Node& node) { return is_alias(node); });
    Shape all;
    for (ValueId id : text.inputs) all = broadcast(all, shape_of(id));
    const bool tells_rows = all == rows_ && keeps_lengths(members);
    return tells_rows ? std::optional(std::move(text)) : std::nullopt;
  }

  // Aliases vanish: what only repeats one value along the row is one value in the kernel. Neither a
  // pass over the row nor the result may be that.
  bool keeps_lengths(const std::vector<size_t>& members) const {
    std::vector<bool> is_long(graph_.value_count()), is_made(graph_.value_count());
    const auto reads_long = [&](ValueId id) {
      return is_made[id] ? is_long[id] : !shape_of(id).empty() && shape_of(id).back() != 1;
    };
    for (size_t member : members) {
      const Node& node = graph_.nodes()[member];
      const ValueId result = node.outputs[0];
      const bool any = std::any_of(node.inputs.begin(), node.inputs.end(), reads_long);
      if (is_row_op(node) && !any) return false;
      is_made[result] = true;
      is_long[result] = any && !is_reduction(node);
    }
    const ValueId result = graph_.nodes()[members.back()].outputs[0];
    return is_long[result] == (shape_of(result) == rows_);
  }

  void add_fused(const FusedText& text, const Node& last, Rewrite& rewrite) const {
    const bool keeps_dims = !is_reduction(last) || int_attr(last.attrs, "keep_dims") != 0;
    const auto& results = rewrite.graph().add_node(
        "fused_rows", {{"program", text.program}, {"keep_dims", int64_t{keeps_dims}}},
        rewrite.map(text.inputs), text.where);
    rewrite.replace(text.result, results[0]);
  }

  const Graph& graph_;
  Shape rows_, line_;
  const std::vector<size_t> producers_;
  const std::vector<uint32_t> uses_;
  std::vector<uint32_t> alias_uses_;
};

}  // namespace

Graph fuse_rows(const Graph& graph) {
  std::set<Shape> shapes;
  for (const Node& node : graph.nodes()) {
    if (const auto rows = rows_of(graph, node)) shapes.insert(*rows);
  }
  Graph fused = graph;
  for (const Shape& rows : shapes) fused = RowFuser(fused, rows).run();
  return fused;
}

}  // namespace ballast::graph
