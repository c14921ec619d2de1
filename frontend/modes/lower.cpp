#include "frontend/modes/lower.h"

#include "frontend/backend/plugin.h"
#include "frontend/program/primitive.h"
#include "frontend/program/token.h"

#include <map>
#include <memory>
#include <unordered_map>

namespace ballast {

namespace {

const ballast_graph_api& graph_api() { return *plugin().graph; }

class Lowering {
 public:
  explicit Lowering(const Program& program, const std::vector<Donated>& donated = {})
      : program_(program) {
    for (const Donated& argument : donated) {
      if (argument.output) output_of_.emplace(argument.leaf, *argument.output);
    }
    check(graph_api().graph_create(&graph_));
  }
  ~Lowering() {
    const ballast_api& api = plugin();
    if (ballast_error* error = api.graph->graph_release(graph_)) api.error_destroy(error);
  }
  Lowering(const Lowering&) = delete;
  Lowering& operator=(const Lowering&) = delete;

  Lowered run(Device& device, const JitOptions& options) {
    build();
    const ballast_compile_options abi = to_abi(options);
    check(graph_api().graph_compile(device.handle(), graph_, &abi, &result_.executable));
    return std::move(result_);
  }

  GraphText text() {
    build();
    ballast_str text{};
    check(graph_api().graph_to_text(graph_, &text));
    return {from_abi(text), std::move(result_.states)};
  }

 private:
  void build() {
    add_inputs();
    add_states();
    for (const Equation& equation : program_.equations) add_node(equation);
    set_results();
  }

  void add_input(const Var& var, const std::string& name) {
    ballast_tensor_desc desc = to_abi(var->type);
    check(graph_api().graph_add_input(graph_, to_abi(name), &desc, &values_[var.get()]));
  }

  void add_inputs() {
    for (size_t i = 0; i < program_.inputs.size(); ++i) {
      const std::string name = "arg" + std::to_string(i);
      if (output_of_.count(i) > 0) {
        add_state(program_.inputs[i]->type, name, &values_[program_.inputs[i].get()]);
      } else {
        add_input(program_.inputs[i], name);
      }
    }
    for (size_t i = 0; i < program_.captured.size(); ++i) {
      add_input(program_.captured[i].var, "captured" + std::to_string(i));
    }
  }

  void add_state(const TensorType& type, const std::string& name, ballast_value* value) {
    ballast_tensor_desc desc = to_abi(type);
    check(graph_api().graph_add_state(graph_, to_abi(name), &desc, value));
  }

  ballast_value add_state(const Parameter& parameter) {
    auto known = states_.find(parameter.id());
    if (known != states_.end()) return known->second;
    ballast_value value = 0;
    add_state(parameter.type(), parameter.name(), &value);
    states_.emplace(parameter.id(), value);
    result_.states.push_back(parameter);
    result_.is_updated.push_back(false);
    return value;
  }

  // What the first effect of a run takes. Nothing follows from the last one's: the plugin keeps
  // effects as they are.
  ballast_value first_token() {
    const ballast_tensor_desc desc = to_abi(token_type());
    ballast_value value = 0;
    check(graph_api().graph_add_constant(graph_, &desc, nullptr, &value));
    return value;
  }

  void add_states() {
    for (const auto& state : program_.states) {
      const bool is_order = is_token(state.var->type);
      values_[state.var.get()] = is_order ? first_token() : add_state(state.parameter);
    }
    for (const auto& effect : program_.effects) {
      if (is_token(effect.value.type())) continue;
      add_state(effect.parameter);
      for (size_t i = 0; i < result_.states.size(); ++i) {
        if (result_.states[i] == effect.parameter) result_.is_updated[i] = true;
      }
    }
  }

  ballast_value value_of(const Atom& atom) {
    if (atom.var) return values_.at(atom.var.get());
    std::vector<uint8_t> bytes = atom.literal.to_host_bytes();
    std::string key(bytes.begin(), bytes.end());
    append_key(key, atom.type());
    auto [entry, is_new] = constants_.emplace(std::move(key), 0);
    if (is_new) {
      ballast_tensor_desc desc = to_abi(atom.type());
      check(graph_api().graph_add_constant(graph_, &desc, bytes.data(), &entry->second));
    }
    return entry->second;
  }

  void add_node(const Equation& equation) {
    std::vector<ballast_value> inputs;
    for (const Atom& atom : equation.inputs) inputs.push_back(value_of(atom));
    const Primitive* primitive = find_primitive(equation.primitive);
    if (primitive && primitive->is_identity) {
      for (size_t i = 0; i < equation.outputs.size(); ++i) {
        values_[equation.outputs[i].get()] = inputs[i];
      }
      return;
    }
    OpCall call(equation.primitive, {}, equation.attrs);
    std::string where = to_string(equation.where);
    std::vector<ballast_value> outputs(equation.outputs.size());
    uint64_t count = 0;
    std::vector<std::unique_ptr<Lowering>> bodies;
    std::vector<ballast_graph*> regions;
    for (const auto& body : equation.bodies) {
      bodies.push_back(std::make_unique<Lowering>(*body));
      bodies.back()->build();
      regions.push_back(bodies.back()->graph_);
    }
    check(graph_api().graph_add_region_node(graph_, call.get(), inputs.data(), inputs.size(),
                                            regions.data(), regions.size(), to_abi(where),
                                            outputs.data(), outputs.size(), &count));
    for (size_t i = 0; i < equation.outputs.size(); ++i) {
      values_[equation.outputs[i].get()] = outputs[i];
    }
  }

  void set_results() {
    for (const auto& effect : program_.effects) {
      if (is_token(effect.value.type())) continue;
      check(graph_api().graph_set_update(graph_, states_.at(effect.parameter.id()),
                                         value_of(effect.value)));
    }
    std::vector<bool> is_update(program_.outputs.size());
    for (const auto& [input, output] : output_of_) {
      is_update[output] = true;
      check(graph_api().graph_set_update(graph_, values_.at(program_.inputs[input].get()),
                                         value_of(program_.outputs[output])));
    }
    std::vector<ballast_value> outputs;
    for (size_t i = 0; i < program_.outputs.size(); ++i) {
      if (!is_update[i]) outputs.push_back(value_of(program_.outputs[i]));
    }
    check(graph_api().graph_set_outputs(graph_, outputs.data(), outputs.size()));
  }

  const Program& program_;
  std::map<size_t, size_t> output_of_;  // by donated input
  ballast_graph* graph_ = nullptr;
  Lowered result_;
  std::unordered_map<const Variable*, ballast_value> values_;
  std::unordered_map<const void*, ballast_value> states_;  // by Parameter::id
  std::map<std::string, ballast_value> constants_;
};

}  // namespace

ballast_compile_options to_abi(const JitOptions& options) {
  ballast_compile_options abi = BALLAST_INIT(ballast_compile_options);
  abi.level = static_cast<int32_t>(options.level.value_or(default_jit_level()));
  abi.replay = static_cast<int32_t>(options.replay);
  return abi;
}

GraphText graph_text(const Program& program) { return Lowering(program).text(); }

Lowered lower(const Program& program, Device& device, const JitOptions& options,
              const std::vector<Donated>& donated) {
  return Lowering(program, donated).run(device, options);
}

}  // namespace ballast
