#include "frontend/transforms/linearize.h"

#include "frontend/transforms/vjp.h"

#include <unordered_set>

namespace ballast {

namespace {

// A program in two: what does not depend on its inputs from number `inputs` on, and the rest. The
// first part gives the program's first `outputs` outputs, then what the second reads of it; the
// second takes these, then the remaining inputs.
struct Parts {
  Program first, second;
};

class Split {
 public:
  Parts run(const Program& program, size_t inputs, size_t outputs) {
    const auto middle = program.inputs.begin() + static_cast<std::ptrdiff_t>(inputs);
    const auto results = program.outputs.begin() + static_cast<std::ptrdiff_t>(outputs);
    parts_.first = program;
    parts_.first.inputs.assign(program.inputs.begin(), middle);
    parts_.first.outputs.assign(program.outputs.begin(), results);
    parts_.first.equations.clear();
    for (auto input = middle; input != program.inputs.end(); ++input) late_.insert(input->get());
    for (const Equation& equation : program.equations) add(equation);
    for (auto output = results; output != program.outputs.end(); ++output) {
      read(*output);
      parts_.second.outputs.push_back(*output);
    }
    parts_.second.inputs.insert(parts_.second.inputs.end(), middle, program.inputs.end());
    return {eliminate_dead_code(parts_.first), eliminate_dead_code(parts_.second)};
  }

 private:
  void add(const Equation& equation) {
    bool is_late = false, is_constant = true;
    for (const Atom& atom : equation.inputs) {
      is_late = is_late || (atom.var && late_.count(atom.var.get()) > 0);
      is_constant = is_constant && !atom.var;
    }
    if (!is_late) parts_.first.equations.push_back(equation);
    if (!is_late && !is_constant) return;
    for (const Atom& atom : equation.inputs) read(atom);
    // What is made of numbers only is in both parts: made again instead of kept.
    for (const Var& var : equation.outputs) (is_late ? late_ : remade_).insert(var.get());
    parts_.second.equations.push_back(equation);
  }

  // The second part reads `atom`.
  void read(const Atom& atom) {
    if (!atom.var || late_.count(atom.var.get()) > 0 || remade_.count(atom.var.get()) > 0) return;
    if (!residuals_.insert(atom.var.get()).second) return;
    parts_.first.outputs.push_back(atom);
    parts_.second.inputs.push_back(atom.var);
  }

  Parts parts_;
  std::unordered_set<const Variable*> late_, remade_, residuals_;
};

}  // namespace

Linearized::Linearized(const Program& program, const std::vector<Tensor>& inputs) {
  std::vector<bool> wanted;
  for (const Tensor& input : inputs) {
    input_types_.push_back(input.type());
    wanted.push_back(is_float(input.dtype()));
  }
  std::vector<TensorType> types = input_types_;
  for (const Atom& output : program.outputs) {
    if (is_float(output.type().dtype)) types.push_back(output.type());
  }
  auto extended = [&](const std::vector<Tensor>& traced) {
    auto next = traced.begin() + static_cast<std::ptrdiff_t>(inputs.size());
    const std::vector<Tensor> arguments(traced.begin(), next);
    std::vector<Tensor> cotangents;
    for (const Atom& output : program.outputs) {
      cotangents.push_back(is_float(output.type().dtype) ? *next++ : Tensor());
    }
    std::vector<Tensor> results;
    const std::vector<Tensor> gradients =
        pullback(program, arguments, cotangents, wanted, &results);
    for (size_t i = 0; i < gradients.size(); ++i) {
      if (!gradients[i].defined()) continue;
      reached_.push_back(i);
      results.push_back(gradients[i]);
    }
    return results;
  };
  const Program both = eliminate_dead_code(trace(extended, types));
  Parts parts = Split().run(both, inputs.size(), program.outputs.size());
  outputs_ = eval(parts.first, inputs);
  const auto residuals = outputs_.begin() + static_cast<std::ptrdiff_t>(program.outputs.size());
  residuals_.assign(residuals, outputs_.end());
  outputs_.erase(residuals, outputs_.end());
  transposed_ = std::move(parts.second);
}

std::vector<Tensor> Linearized::pull(const std::vector<Tensor>& cotangents) const {
  if (cotangents.size() != outputs_.size()) {
    fail(BALLAST_INVALID_ARGUMENT, "[vjp] {} cotangents are given for {} outputs",
         cotangents.size(), outputs_.size());
  }
  std::vector<Tensor> inputs = residuals_;
  for (size_t i = 0; i < cotangents.size(); ++i) {
    const TensorType& type = outputs_[i].type();
    if (!is_float(type.dtype)) continue;
    if (cotangents[i].defined() && cotangents[i].type() != type) {
      fail(BALLAST_INVALID_ARGUMENT, "[vjp] cotangent {} is {}, its output {}", i,
           to_string(cotangents[i].type()), to_string(type));
    }
    inputs.push_back(cotangents[i].defined() ? cotangents[i]
                                             : Tensor::zeros(type.shape, type.dtype));
  }
  const std::vector<Tensor> found = eval(transposed_, inputs);
  std::vector<Tensor> gradients(input_types_.size());
  for (size_t i = 0; i < found.size(); ++i) gradients[reached_[i]] = found[i];
  for (size_t i = 0; i < gradients.size(); ++i) {
    const TensorType& type = input_types_[i];
    const bool is_zero = !gradients[i].defined() && is_float(type.dtype);
    if (is_zero) gradients[i] = Tensor::zeros(type.shape, type.dtype);
  }
  return gradients;
}

}  // namespace ballast
