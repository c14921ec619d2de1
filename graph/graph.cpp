#include "graph/graph.h"

namespace ballast::graph {

using device::Code;
using device::fail;

ValueId Graph::add_value(Value value) {
  check_size(value.type);
  values_.push_back(std::move(value));
  return static_cast<ValueId>(values_.size() - 1);
}

void Graph::check_value(ValueId id, const char* what) const {
  if (id >= values_.size()) {
    fail(Code::kInvalidArgument, "[graph] {} names value {}, but there are {}", what, id,
         values_.size());
  }
}

ValueId Graph::add_input(std::string name, TensorType type) {
  const ValueId id = add_value({ValueKind::kInput, std::move(type), std::move(name), nullptr});
  inputs_.push_back(id);
  return id;
}

ValueId Graph::add_state(std::string name, TensorType type) {
  const ValueId id = add_value({ValueKind::kState, std::move(type), std::move(name), nullptr});
  states_.push_back(id);
  updates_.push_back(kNoValue);
  return id;
}

ValueId Graph::add_constant(TensorType type, std::shared_ptr<const std::vector<uint8_t>> data) {
  check_size(type);
  if (data->size() != type.bytes()) {
    fail(Code::kInvalidArgument, "[graph] constant {} needs {} bytes, got {}", to_string(type),
         type.bytes(), data->size());
  }
  return add_value({ValueKind::kConstant, std::move(type), {}, std::move(data)});
}

const std::vector<ValueId>& Graph::add_node(const std::string& op, Attrs attrs,
                                            std::vector<ValueId> inputs, std::string where,
                                            Regions regions, const OutputCheck& check_outputs) {
  for (ValueId id : inputs) check_value(id, op.c_str());
  std::vector<TensorType> results;
  OpCall call;
  try {
    call = make_call(op, std::move(attrs), types(inputs), std::move(regions));
    results = infer(call);
  } catch (const device::Error& error) {
    if (where.empty()) throw;
    throw device::Error(error.code(), fmt::format("{} (at {})", error.what(), where));
  }
  if (check_outputs) check_outputs(results.size());
  Node node{call.op, std::move(call.attrs), std::move(inputs),
            {},      std::move(where),      std::move(call.regions)};
  for (TensorType& type : results) {
    node.outputs.push_back(add_value({ValueKind::kNode, std::move(type), {}, nullptr}));
  }
  nodes_.push_back(std::move(node));
  return nodes_.back().outputs;
}

void Graph::set_update(ValueId state, ValueId value) {
  check_value(state, "update");
  check_value(value, "update");
  for (size_t i = 0; i < states_.size(); ++i) {
    if (states_[i] != state) continue;
    if (updates_[i] != kNoValue) {
      fail(Code::kInvalidArgument, "[graph] state \"{}\" is updated twice", values_[state].name);
    }
    if (values_[value].type != values_[state].type) {
      fail(Code::kInvalidArgument, "[graph] state \"{}\" is {}, its update is {}",
           values_[state].name, to_string(values_[state].type), to_string(values_[value].type));
    }
    updates_[i] = value;
    return;
  }
  fail(Code::kInvalidArgument, "[graph] update: value {} is not a state", state);
}

void Graph::set_outputs(std::vector<ValueId> outputs) {
  for (ValueId id : outputs) check_value(id, "outputs");
  outputs_ = std::move(outputs);
}

std::vector<TensorType> Graph::types(const std::vector<ValueId>& ids) const {
  std::vector<TensorType> result;
  result.reserve(ids.size());
  for (ValueId id : ids) result.push_back(value(id).type);
  return result;
}

std::vector<uint32_t> Graph::use_counts() const {
  std::vector<uint32_t> uses(values_.size());
  for (const Node& node : nodes_) {
    for (ValueId id : node.inputs) ++uses[id];
  }
  for (ValueId id : outputs_) ++uses[id];
  for (ValueId id : updates_) {
    if (id != kNoValue) ++uses[id];
  }
  return uses;
}

std::vector<size_t> Graph::producers() const {
  std::vector<size_t> result(values_.size(), nodes_.size());
  for (size_t i = 0; i < nodes_.size(); ++i) {
    for (ValueId id : nodes_[i].outputs) result[id] = i;
  }
  return result;
}

Rewrite::Rewrite(const Graph& old) : old_(old), map_(old.value_count(), kNoValue) {
  for (ValueId id = 0; id < old.value_count(); ++id) {
    const Value& value = old.value(id);
    if (value.kind == ValueKind::kInput) map_[id] = new_.add_input(value.name, value.type);
    if (value.kind == ValueKind::kState) map_[id] = new_.add_state(value.name, value.type);
    if (value.kind == ValueKind::kConstant) map_[id] = new_.add_constant(value.type, value.data);
  }
}

ValueId Rewrite::map(ValueId old_value) const {
  const ValueId id = map_.at(old_value);
  if (id == kNoValue)
    fail(Code::kInternal, "[graph] value {} is read before it is made", old_value);
  return id;
}

std::vector<ValueId> Rewrite::map(const std::vector<ValueId>& old_values) const {
  std::vector<ValueId> result;
  for (ValueId id : old_values) result.push_back(map(id));
  return result;
}

void Rewrite::replace(ValueId old_value, ValueId new_value) {
  const TensorType &before = old_.value(old_value).type, &after = new_.value(new_value).type;
  if (!(before == after)) {
    fail(Code::kInternal, "[graph] value {}, {}, would become {}", old_value, to_string(before),
         to_string(after));
  }
  map_[old_value] = new_value;
}

void Rewrite::keep(const Node& node) {
  const auto& outputs =
      new_.add_node(node.op->name, node.attrs, map(node.inputs), node.where, node.regions);
  for (size_t i = 0; i < outputs.size(); ++i) replace(node.outputs[i], outputs[i]);
}

Graph Rewrite::finish() {
  for (size_t i = 0; i < old_.states().size(); ++i) {
    if (old_.updates()[i] != kNoValue) {
      new_.set_update(new_.states()[i], map(old_.updates()[i]));
    }
  }
  new_.set_outputs(map(old_.outputs()));
  return std::move(new_);
}

void verify(const Graph& graph) {
  std::vector<bool> is_made(graph.value_count());
  for (ValueId id = 0; id < graph.value_count(); ++id) {
    is_made[id] = graph.value(id).kind != ValueKind::kNode;
  }
  auto require = [&](bool holds, const std::string& what) {
    if (!holds) fail(Code::kInternal, "[verify] {}", what);
  };
  for (const Node& node : graph.nodes()) {
    for (ValueId id : node.inputs) {
      require(id < graph.value_count() && is_made[id],
              fmt::format("{} reads value {} before it is made", node.op->name, id));
    }
    for (const auto& region : node.regions) verify(*region);
    const auto inferred = infer({node.op, node.attrs, graph.types(node.inputs), node.regions});
    require(inferred == graph.types(node.outputs),
            fmt::format("{} has outputs of other types than inferred", node.op->name));
    for (ValueId id : node.outputs) {
      require(!is_made[id], fmt::format("value {} is made twice", id));
      is_made[id] = true;
    }
  }
  for (ValueId id : graph.outputs()) require(is_made[id], fmt::format("output {} is not made", id));
  for (size_t i = 0; i < graph.states().size(); ++i) {
    const ValueId id = graph.updates()[i];
    if (id == kNoValue) continue;
    require(is_made[id], fmt::format("update value {} is not made", id));
    require(graph.value(id).type == graph.value(graph.states()[i]).type,
            fmt::format("update value {} has another type than its state", id));
  }
}

}  // namespace ballast::graph
