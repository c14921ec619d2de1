// Where every value of a graph lives: bound memory, state, constants, or one planned arena.
//
// Liveness over the node order gives each temporary an interval; intervals that do not meet share
// memory (SOMAS's task). Ops that work in place take over a dying input's memory; updates are
// written into their state's buffer where nobody reads the old value any more.
#pragma once

#include "graph/graph.h"

namespace ballast::graph {

struct Storage {
  enum class Kind { kNone, kInput, kOutput, kState, kConstant, kArena };
  Kind kind = Kind::kNone;
  uint64_t index = 0;  // number of the input, output, state; value id of a constant; arena offset
};

struct StateCopy {  // after the last node: state number `state` takes the memory of `value`
  size_t state;
  ValueId value;
};

struct MemoryPlan {
  std::vector<Storage> values;       // by value id
  std::vector<uint64_t> workspaces;  // by node: arena offset of its workspace (if it has one)
  std::vector<StateCopy> copies;
  uint64_t arena_bytes = 0;
  uint64_t naive_bytes = 0;        // every temporary with memory of its own
  uint64_t lower_bound_bytes = 0;  // largest sum alive at once
};

// `workspace_bytes` by node. `graph` has gone through separate_results.
MemoryPlan plan_memory(const Graph& graph, const std::vector<uint64_t>& workspace_bytes,
                       uint64_t alignment);

}  // namespace ballast::graph
