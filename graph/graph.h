// The graph: typed values, nodes in topological order, declared state, outputs, updates.
//
// A value type: passes take one graph and return another. State is functional here: reading a state
// value always means its value at the start of the run; `updates` say what it holds afterwards.
#pragma once

#include "graph/op.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace ballast::graph {

using ValueId = uint32_t;
constexpr ValueId kNoValue = ~ValueId{0};

enum class ValueKind { kInput, kState, kConstant, kNode };

struct Value {
  ValueKind kind = ValueKind::kNode;
  TensorType type;
  std::string name;                                  // inputs and states
  std::shared_ptr<const std::vector<uint8_t>> data;  // constants
};

struct Node {
  const OpDef* op = nullptr;
  Attrs attrs;
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  std::string where;  // the user's source position; may be empty
  Regions regions;    // of control flow; shared by copies of the node
};

class Graph {
 public:
  ValueId add_input(std::string name, TensorType type);
  ValueId add_state(std::string name, TensorType type);
  ValueId add_constant(TensorType type, std::shared_ptr<const std::vector<uint8_t>> data);
  // Infers the result types. Errors carry `where`. `check_outputs` is told how many results there
  // are before anything is added, and may throw.
  using OutputCheck = std::function<void(uint64_t count)>;
  const std::vector<ValueId>& add_node(const std::string& op, Attrs attrs,
                                       std::vector<ValueId> inputs, std::string where = {},
                                       Regions regions = {}, const OutputCheck& check_outputs = {});
  void set_update(ValueId state, ValueId value);
  void set_outputs(std::vector<ValueId> outputs);

  const Value& value(ValueId id) const { return values_.at(id); }
  size_t value_count() const { return values_.size(); }
  const std::vector<Node>& nodes() const { return nodes_; }
  const std::vector<ValueId>& inputs() const { return inputs_; }
  const std::vector<ValueId>& states() const { return states_; }
  const std::vector<ValueId>& outputs() const { return outputs_; }
  // By state number: the value it takes, or kNoValue.
  const std::vector<ValueId>& updates() const { return updates_; }

  std::vector<TensorType> types(const std::vector<ValueId>& ids) const;
  // How often each value is read by nodes, outputs and updates.
  std::vector<uint32_t> use_counts() const;
  // The node that makes each value; nodes().size() where none does.
  std::vector<size_t> producers() const;

 private:
  ValueId add_value(Value value);
  void check_value(ValueId id, const char* what) const;

  std::vector<Value> values_;
  std::vector<Node> nodes_;
  std::vector<ValueId> inputs_, states_, outputs_, updates_;
};

// Whether the predicate holds for the node or for one inside of its regions.
template <class Predicate>
bool any_within(const Node& node, const Predicate& predicate) {
  if (predicate(node)) return true;
  for (const auto& region : node.regions) {
    for (const Node& inner : region->nodes()) {
      if (any_within(inner, predicate)) return true;
    }
  }
  return false;
}

// Copies a graph node by node while a pass replaces some of them. Inputs, states and constants are
// copied first, so every old value that a new node may read has its new number in map().
class Rewrite {
 public:
  explicit Rewrite(const Graph& old);
  Graph& graph() { return new_; }
  ValueId map(ValueId old_value) const;
  std::vector<ValueId> map(const std::vector<ValueId>& old_values) const;
  // Throws kInternal where the types differ.
  void replace(ValueId old_value, ValueId new_value);
  // Copies one node, its inputs mapped.
  void keep(const Node& node);
  // Maps outputs and updates, and gives the graph away.
  Graph finish();

 private:
  const Graph& old_;
  Graph new_;
  std::vector<ValueId> map_;
};

// Throws kInternal if an invariant is broken: order, types as inferred, updates and outputs valid;
// of regions too.
void verify(const Graph& graph);

}  // namespace ballast::graph
