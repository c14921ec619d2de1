#include "frontend/control_flow/closure.h"

#include <algorithm>

namespace ballast {

namespace {

bool is_same(const Tensor& a, const Tensor& b) {
  if (a.type() != b.type() || a.is_traced() != b.is_traced()) return false;
  if (a.is_traced()) return a.variable() == b.variable();
  if (a.is_on_host() || b.is_on_host()) return a.host_data() == b.host_data();
  return a.buffer() == b.buffer();
}

bool has(const std::vector<Parameter>& list, const Parameter& parameter) {
  return std::find(list.begin(), list.end(), parameter) != list.end();
}

Var captured_as(const Program& program, const Tensor& tensor) {
  for (const auto& captured : program.captured) {
    if (is_same(captured.value, tensor)) return captured.var;
  }
  return std::make_shared<Variable>(Variable{tensor.type()});
}

Var state_as(const Program& program, const Parameter& parameter) {
  for (const auto& state : program.states) {
    if (state.parameter == parameter) return state.var;
  }
  return std::make_shared<Variable>(Variable{parameter.type()});
}

}  // namespace

Outside::Outside(const std::vector<const Program*>& programs) {
  for (const Program* program : programs) {
    for (const auto& captured : program->captured) {
      auto same = [&](const Tensor& tensor) { return is_same(tensor, captured.value); };
      if (std::none_of(tensors.begin(), tensors.end(), same)) tensors.push_back(captured.value);
    }
    for (const auto& effect : program->effects) {
      if (!has(assigned, effect.parameter)) assigned.push_back(effect.parameter);
    }
  }
  for (const Program* program : programs) {
    for (const auto& state : program->states) {
      if (has(read, state.parameter) || has(assigned, state.parameter)) continue;
      read.push_back(state.parameter);
    }
  }
}

std::vector<Tensor> Outside::constants() const {
  std::vector<Tensor> values = tensors;
  for (const Parameter& parameter : read) values.push_back(parameter.value());
  return values;
}

std::vector<Tensor> Outside::assigned_values() const {
  std::vector<Tensor> values;
  for (const Parameter& parameter : assigned) values.push_back(parameter.value());
  return values;
}

void Outside::assign(const std::vector<Tensor>& values) const {
  for (size_t i = 0; i < assigned.size(); ++i) assigned[i].assign(values.at(i));
}

std::shared_ptr<const Program> close(const Program& program, const Outside& outside,
                                     const Layout& layout) {
  auto closed = std::make_shared<Program>();
  closed->equations = program.equations;
  std::vector<Var>& inputs = closed->inputs;
  for (const Tensor& tensor : outside.tensors) inputs.push_back(captured_as(program, tensor));
  for (const Parameter& each : outside.read) inputs.push_back(state_as(program, each));
  size_t inputs_before = inputs.size() + layout.inputs_before;
  inputs.insert(inputs.end(), program.inputs.begin(), program.inputs.end());
  closed->outputs = program.outputs;

  std::vector<Var> old_values;
  std::vector<Atom> new_values;
  for (const Parameter& parameter : outside.assigned) {
    old_values.push_back(state_as(program, parameter));
    new_values.push_back({old_values.back(), {}});
    for (const auto& effect : program.effects) {
      if (effect.parameter == parameter) new_values.back() = effect.value;
    }
  }
  inputs.insert(inputs.begin() + static_cast<std::ptrdiff_t>(inputs_before), old_values.begin(),
                old_values.end());
  if (layout.returns_assigned) {
    closed->outputs.insert(
        closed->outputs.begin() + static_cast<std::ptrdiff_t>(layout.outputs_before),
        new_values.begin(), new_values.end());
  }
  return closed;
}

}  // namespace ballast
