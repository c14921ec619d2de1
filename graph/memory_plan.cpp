#include "graph/memory_plan.h"

#include <algorithm>

namespace ballast::graph {

namespace {

constexpr size_t kNever = ~size_t{0};

// A piece of arena: alive from node `first` to node `last`, both included.
struct Block {
  uint64_t size = 0;
  size_t first = 0, last = 0;
  uint64_t offset = 0;
  bool meets(const Block& o) const { return first <= o.last && o.first <= last; }
};

// Largest first, each at the lowest offset that no block alive at the same time covers.
uint64_t place(std::vector<Block>& blocks) {
  std::vector<Block*> by_size, placed;
  for (Block& block : blocks) by_size.push_back(&block);
  std::stable_sort(by_size.begin(), by_size.end(),
                   [](const Block* a, const Block* b) { return a->size > b->size; });
  uint64_t end = 0;
  for (Block* block : by_size) {
    for (const Block* other : placed) {  // sorted by offset
      if (!other->meets(*block)) continue;
      if (block->offset + block->size <= other->offset) break;
      block->offset = std::max(block->offset, other->offset + other->size);
    }
    end = std::max(end, block->offset + block->size);
    placed.insert(std::upper_bound(placed.begin(), placed.end(), block,
                                   [](auto* a, auto* b) { return a->offset < b->offset; }),
                  block);
  }
  return end;
}

class Planner {
 public:
  Planner(const Graph& graph, uint64_t alignment)
      : graph_(graph),
        alignment_(alignment),
        root_(graph.value_count()),
        last_read_(graph.value_count(), kNever),
        block_of_(graph.value_count(), kNever),
        is_taken_(graph.value_count()) {
    plan_.values.resize(graph.value_count());
    find_roots_and_reads();
  }

  MemoryPlan run(const std::vector<uint64_t>& workspace_bytes) {
    place_fixed();
    plan_.workspaces.resize(graph_.nodes().size());
    std::vector<size_t> workspace_block(graph_.nodes().size(), kNever);
    for (size_t i = 0; i < graph_.nodes().size(); ++i) {
      const Node& node = graph_.nodes()[i];
      if (!node.op->is_alias) {
        for (size_t k = 0; k < node.outputs.size(); ++k) place_temporary(i, k);
      }
      if (workspace_bytes[i] > 0) {
        workspace_block[i] = blocks_.size();
        add_block(workspace_bytes[i], i, i);
      }
    }
    measure();
    plan_.arena_bytes = place(blocks_);
    for (ValueId id = 0; id < graph_.value_count(); ++id) {
      if (block_of_[id] != kNever) {
        plan_.values[id] = {Storage::Kind::kArena, blocks_[block_of_[id]].offset};
      }
    }
    for (ValueId id = 0; id < graph_.value_count(); ++id)
      plan_.values[id] = plan_.values[root_[id]];
    for (size_t i = 0; i < workspace_block.size(); ++i) {
      if (workspace_block[i] != kNever) plan_.workspaces[i] = blocks_[workspace_block[i]].offset;
    }
    return std::move(plan_);
  }

 private:
  void find_roots_and_reads() {
    for (ValueId id = 0; id < graph_.value_count(); ++id) root_[id] = id;
    for (size_t i = 0; i < graph_.nodes().size(); ++i) {
      const Node& node = graph_.nodes()[i];
      if (node.op->is_alias) {
        root_[node.outputs[0]] = root_[node.inputs[0]];
      } else {
        for (ValueId id : node.inputs) last_read_[root_[id]] = i;
      }
    }
  }

  void place_fixed() {
    auto fix = [&](const std::vector<ValueId>& ids, Storage::Kind kind) {
      for (size_t i = 0; i < ids.size(); ++i) plan_.values[ids[i]] = {kind, i};
    };
    fix(graph_.inputs(), Storage::Kind::kInput);
    fix(graph_.states(), Storage::Kind::kState);
    fix(graph_.outputs(), Storage::Kind::kOutput);
    for (ValueId id = 0; id < graph_.value_count(); ++id) {
      if (graph_.value(id).kind == ValueKind::kConstant) {
        plan_.values[id] = {Storage::Kind::kConstant, id};
      }
    }
    const std::vector<size_t> producers = graph_.producers();
    for (size_t s = 0; s < graph_.states().size(); ++s) {
      const ValueId value = graph_.updates()[s];
      if (value == kNoValue) continue;
      if (may_write_state(producers[value], value, graph_.states()[s])) {
        plan_.values[value] = {Storage::Kind::kState, s};
      } else {
        plan_.copies.push_back({s, value});
        last_read_[value] = graph_.nodes().size();
      }
    }
  }

  // Whether `node` may write `value` over the old content of `state`.
  bool may_write_state(size_t node, ValueId value, ValueId state) const {
    if (last_read_[state] == kNever || last_read_[state] < node) return true;
    return last_read_[state] == node && works_in_place(node, value, state);
  }

  // Whether every read of `input` by the node is one that `output` may overwrite.
  bool works_in_place(size_t node_index, ValueId output, ValueId input) const {
    const Node& node = graph_.nodes()[node_index];
    if (graph_.value(output).type != graph_.value(input).type) return false;
    const size_t k =
        std::find(node.outputs.begin(), node.outputs.end(), output) - node.outputs.begin();
    bool reads = false;
    for (size_t j = 0; j < node.inputs.size(); ++j) {
      if (root_[node.inputs[j]] != input) continue;
      const auto pair = std::pair(k, j);
      const auto& pairs = node.op->in_place;
      if (std::find(pairs.begin(), pairs.end(), pair) == pairs.end()) return false;
      if (graph_.value(node.inputs[j]).type != graph_.value(output).type) return false;
      reads = true;
    }
    return reads;
  }

  void place_temporary(size_t node_index, size_t k) {
    const Node& node = graph_.nodes()[node_index];
    const ValueId id = node.outputs[k];
    if (plan_.values[id].kind != Storage::Kind::kNone) return;
    const size_t last = last_read_[id] == kNever ? node_index : last_read_[id];
    plan_.naive_bytes += aligned(graph_.value(id).type.bytes());
    for (ValueId input : node.inputs) {
      const ValueId root = root_[input];
      if (block_of_[root] == kNever || last_read_[root] != node_index || is_taken_[root]) continue;
      if (!works_in_place(node_index, id, root)) continue;
      block_of_[id] = block_of_[root];
      blocks_[block_of_[id]].last = last;
      is_taken_[root] = true;
      return;
    }
    block_of_[id] = blocks_.size();
    add_block(graph_.value(id).type.bytes(), node_index, last);
  }

  uint64_t aligned(uint64_t size) const {
    return std::max<uint64_t>((size + alignment_ - 1) / alignment_ * alignment_, alignment_);
  }
  void add_block(uint64_t size, size_t first, size_t last) {
    blocks_.push_back({aligned(size), first, last, 0});
  }

  void measure() {
    for (size_t i = 0; i <= graph_.nodes().size(); ++i) {
      uint64_t alive = 0;
      for (const Block& block : blocks_) {
        if (block.first <= i && i <= block.last) alive += block.size;
      }
      plan_.lower_bound_bytes = std::max(plan_.lower_bound_bytes, alive);
    }
  }

  const Graph& graph_;
  const uint64_t alignment_;
  std::vector<ValueId> root_;      // the value whose memory an alias shows
  std::vector<size_t> last_read_;  // by root: the last node that reads it
  std::vector<size_t> block_of_;   // by root
  std::vector<bool> is_taken_;     // by root: a later value took its memory over
  std::vector<Block> blocks_;
  MemoryPlan plan_;
};

}  // namespace

MemoryPlan plan_memory(const Graph& graph, const std::vector<uint64_t>& workspace_bytes,
                       uint64_t alignment) {
  return Planner(graph, alignment).run(workspace_bytes);
}

}  // namespace ballast::graph
