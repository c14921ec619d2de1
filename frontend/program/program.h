// Program: the functional IR that every transform reads and writes. Equations are in order; a
// variable is assigned once and identified by its address. A Program is a value: copying one shares
// its variables, which never change.
#pragma once

#include "frontend/tensor/attrs.h"
#include "frontend/tensor/parameter.h"
#include "frontend/tensor/tensor.h"

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace ballast {

struct Variable {
  TensorType type;
};
using Var = std::shared_ptr<const Variable>;

// A variable, or a literal (a host tensor with one element).
struct Atom {
  Var var;
  Tensor literal;

  const TensorType& type() const { return var ? var->type : literal.type(); }
};

struct Program;
// What control flow runs: programs without captured tensors, states and effects
// (frontend/control_flow/closure.h makes them so).
using Bodies = std::vector<std::shared_ptr<const Program>>;

struct Equation {
  std::string primitive;
  std::vector<Atom> inputs;
  Attrs attrs;
  std::vector<Var> outputs;
  Where where;
  Bodies bodies;  // of control flow; else empty
};

struct Program {
  struct Captured {
    Var var;
    Tensor value;  // concrete, or traced by an enclosing trace
  };
  struct State {
    Var var;  // the parameter's value before the program
    Parameter parameter;
  };
  struct Effect {
    Parameter parameter;
    Atom value;  // the parameter's value after the program
  };

  std::vector<Var> inputs;
  std::vector<Captured> captured;
  std::vector<State> states;
  std::vector<Equation> equations;
  std::vector<Atom> outputs;
  std::vector<Effect> effects;
};

struct PrintOptions {
  bool has_lines = false;  // whether every equation ends with the user's line: @ "net.cpp:12"
};
// frontend/program/program_text.h says how it reads, and reads it.
std::string to_string(const Program& program, const PrintOptions& options = {});

// Throws INTERNAL unless every variable is defined once, before its uses, the types of all
// equations are what is inferred for them, and bodies are closed programs of which this holds too.
void verify(const Program& program);

std::vector<TensorType> input_types(const Program& program);
std::vector<TensorType> output_types(const Program& program);

// Drops equations, states and captures that neither outputs nor effects need.
[[nodiscard]] Program eliminate_dead_code(const Program& program);

// The values of a program's variables while it is run through apply_primitive().
class Environment {
 public:
  // Sets inputs, captured tensors and states.
  void enter(const Program& program, const std::vector<Tensor>& inputs);
  // With other tensors in the place of those captured.
  void enter(const Program& program, const std::vector<Tensor>& inputs,
             const std::vector<Tensor>& captured);
  void set(const Var& var, const Tensor& value) { values_[var.get()] = value; }
  void drop(const Var& var) { values_.erase(var.get()); }
  Tensor get(const Atom& atom) const;
  std::vector<Tensor> get(const std::vector<Atom>& atoms) const;
  void run(const Equation& equation);
  void assign_effects(const Program& program) const;

 private:
  std::unordered_map<const Variable*, Tensor> values_;
};

// Runs the program through apply_primitive(): op by op on the device, or into the enclosing trace.
// Effects are assigned at the end.
std::vector<Tensor> eval(const Program& program, const std::vector<Tensor>& inputs);
// With other tensors in the place of those captured.
std::vector<Tensor> eval(const Program& program, const std::vector<Tensor>& inputs,
                         const std::vector<Tensor>& captured);

}  // namespace ballast
