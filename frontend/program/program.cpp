#include "frontend/program/program.h"

#include "frontend/control_flow/prune.h"
#include "frontend/program/primitive.h"
#include "frontend/program/trace.h"
#include "frontend/tensor/operand.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace ballast {

namespace {

std::vector<TensorType> types_of_atoms(const std::vector<Atom>& atoms) {
  std::vector<TensorType> types;
  for (const Atom& atom : atoms) types.push_back(atom.type());
  return types;
}

void verify_equation(const Equation& equation) {
  for (const auto& body : equation.bodies) {
    if (!body->captured.empty() || !body->states.empty() || !body->effects.empty()) {
      fail(BALLAST_INTERNAL, "[program] a body of {} is not closed", equation.primitive);
    }
    verify(*body);
  }
  std::vector<TensorType> expected =
      infer(equation.primitive, types_of_atoms(equation.inputs), equation.attrs, equation.bodies);
  bool is_equal = expected.size() == equation.outputs.size();
  for (size_t i = 0; is_equal && i < expected.size(); ++i) {
    is_equal = expected[i] == equation.outputs[i]->type;
  }
  if (!is_equal) {
    fail(BALLAST_INTERNAL, "[program] the results of {} do not have the inferred types",
         equation.primitive);
  }
}

}  // namespace

void verify(const Program& program) {
  std::unordered_set<const Variable*> defined;
  auto define = [&](const Var& var) {
    if (!var || !defined.insert(var.get()).second) {
      fail(BALLAST_INTERNAL, "[program] a variable is defined twice");
    }
  };
  auto use = [&](const Atom& atom) {
    if (atom.var ? defined.count(atom.var.get()) == 0 : !atom.literal.defined()) {
      fail(BALLAST_INTERNAL, "[program] a variable is used before it is defined");
    }
  };
  for (const Var& var : program.inputs) define(var);
  for (const auto& captured : program.captured) define(captured.var);
  for (const auto& state : program.states) define(state.var);
  for (const Equation& equation : program.equations) {
    for (const Atom& atom : equation.inputs) use(atom);
    verify_equation(equation);
    for (const Var& var : equation.outputs) define(var);
  }
  for (const Atom& atom : program.outputs) use(atom);
  for (const auto& effect : program.effects) {
    use(effect.value);
    if (effect.value.type() != effect.parameter.type()) {
      fail(BALLAST_INTERNAL, "[program] parameter {} is updated with another type",
           effect.parameter.name());
    }
  }
}

std::vector<TensorType> input_types(const Program& program) {
  std::vector<TensorType> types;
  for (const Var& var : program.inputs) types.push_back(var->type);
  return types;
}

std::vector<TensorType> output_types(const Program& program) {
  return types_of_atoms(program.outputs);
}

Program eliminate_dead_code(const Program& program) {
  std::unordered_set<const Variable*> live;
  auto mark = [&](const Atom& atom) {
    if (atom.var) live.insert(atom.var.get());
  };
  for (const Atom& atom : program.outputs) mark(atom);
  for (const auto& effect : program.effects) mark(effect.value);

  Program result = program;
  result.equations.clear();
  auto is_live = [&](const Var& var) { return live.count(var.get()) > 0; };
  for (auto it = program.equations.rbegin(); it != program.equations.rend(); ++it) {
    if (std::none_of(it->outputs.begin(), it->outputs.end(), is_live)) continue;
    result.equations.push_back(it->bodies.empty() ? *it : prune(*it, is_live));
    for (const Atom& atom : result.equations.back().inputs) mark(atom);
  }
  std::reverse(result.equations.begin(), result.equations.end());
  auto is_dead = [&](const auto& entry) { return !is_live(entry.var); };
  auto& captured = result.captured;
  captured.erase(std::remove_if(captured.begin(), captured.end(), is_dead), captured.end());
  auto& states = result.states;
  states.erase(std::remove_if(states.begin(), states.end(), is_dead), states.end());
  return result;
}

namespace {

std::vector<Tensor> captured_values(const Program& program) {
  std::vector<Tensor> values;
  for (const auto& captured : program.captured) values.push_back(captured.value);
  return values;
}

// Where each variable is read last: an equation's number, or equations.size() for the end.
std::unordered_map<const Variable*, size_t> last_uses(const Program& program) {
  std::unordered_map<const Variable*, size_t> last;
  auto note = [&](const Atom& atom, size_t position) {
    if (atom.var) last[atom.var.get()] = position;
  };
  for (size_t i = 0; i < program.equations.size(); ++i) {
    for (const Atom& atom : program.equations[i].inputs) note(atom, i);
  }
  for (const Atom& atom : program.outputs) note(atom, program.equations.size());
  for (const auto& effect : program.effects) note(effect.value, program.equations.size());
  return last;
}

}  // namespace

void Environment::enter(const Program& program, const std::vector<Tensor>& inputs) {
  enter(program, inputs, captured_values(program));
}

void Environment::enter(const Program& program, const std::vector<Tensor>& inputs,
                        const std::vector<Tensor>& captured) {
  for (size_t i = 0; i < program.inputs.size(); ++i) set(program.inputs[i], inputs.at(i));
  for (size_t i = 0; i < program.captured.size(); ++i) set(program.captured[i].var, captured.at(i));
  for (const auto& state : program.states) set(state.var, state.parameter.value());
}

Tensor Environment::get(const Atom& atom) const {
  return atom.var ? values_.at(atom.var.get()) : atom.literal;
}

std::vector<Tensor> Environment::get(const std::vector<Atom>& atoms) const {
  std::vector<Tensor> tensors;
  for (const Atom& atom : atoms) tensors.push_back(get(atom));
  return tensors;
}

void Environment::run(const Equation& equation) {
  CallScope scope(equation.where, /*is_override=*/true);
  std::vector<Tensor> results = apply_primitive(equation.primitive, get(equation.inputs),
                                                equation.attrs, equation.where, equation.bodies);
  for (size_t i = 0; i < results.size(); ++i) set(equation.outputs[i], results[i]);
}

void Environment::assign_effects(const Program& program) const {
  for (const auto& effect : program.effects) effect.parameter.assign(get(effect.value));
}

std::vector<Tensor> eval(const Program& program, const std::vector<Tensor>& inputs) {
  return eval(program, inputs, captured_values(program));
}

std::vector<Tensor> eval(const Program& program, const std::vector<Tensor>& inputs,
                         const std::vector<Tensor>& captured) {
  std::unordered_map<const Variable*, size_t> last = last_uses(program);
  Environment environment;
  environment.enter(program, inputs, captured);
  for (size_t i = 0; i < program.equations.size(); ++i) {
    const Equation& equation = program.equations[i];
    environment.run(equation);
    for (const Atom& atom : equation.inputs) {
      if (atom.var && last[atom.var.get()] == i) environment.drop(atom.var);
    }
  }
  std::vector<Tensor> outputs = environment.get(program.outputs);
  environment.assign_effects(program);
  return outputs;
}

}  // namespace ballast
