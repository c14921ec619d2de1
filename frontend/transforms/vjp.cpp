#include "frontend/transforms/vjp.h"

#include "frontend/ops/ops.h"
#include "frontend/program/primitive.h"

#include <numeric>
#include <unordered_set>

namespace ballast {

namespace {

// Gradients by variable; contributions are added in the order in which they come.
class Cotangents {
 public:
  void add(const Var& var, const Tensor& gradient) {
    Tensor& sum = sums_[var.get()];
    sum = sum.defined() ? sum + gradient : gradient;
  }
  Tensor get(const Var& var) const {
    auto found = sums_.find(var.get());
    return found == sums_.end() ? Tensor() : found->second;
  }
  Tensor get_or_zero(const Var& var) const {
    Tensor sum = get(var);
    return sum.defined() ? sum : Tensor::zeros(var->type.shape, var->type.dtype);
  }

 private:
  std::unordered_map<const Variable*, Tensor> sums_;
};

class Reverse {
 public:
  Reverse(const Program& program, const std::vector<Var>& wrt) : program_(program) {
    for (const Var& var : wrt) {
      if (var) active_.insert(var.get());
    }
    for (const Equation& equation : program.equations) {
      if (!is_active(equation.inputs)) continue;
      for (const Var& var : equation.outputs) active_.insert(var.get());
    }
  }

  bool is_active(const Atom& atom) const { return atom.var && active_.count(atom.var.get()) > 0; }

  // Runs the equations, keeping what their gradients need.
  void forward(Environment& values) {
    for (const Equation& equation : program_.equations) {
      const Primitive* primitive = find_primitive(equation.primitive);
      if (!primitive || !primitive->augment || !is_active(equation.inputs)) {
        values.run(equation);
        continue;
      }
      CallScope scope(equation.where, /*is_override=*/true);
      std::vector<Tensor> inputs = values.get(equation.inputs);
      std::vector<Tensor> results =
          primitive->augment({equation.attrs, inputs, equation.bodies, wanted(equation)});
      auto residuals = results.begin() + static_cast<std::ptrdiff_t>(equation.outputs.size());
      for (size_t i = 0; i < equation.outputs.size(); ++i) {
        values.set(equation.outputs[i], results[i]);
      }
      residuals_[&equation].assign(residuals, results.end());
    }
  }

  // Backwards through the equations, from the cotangents of the outputs (undefined: zero). `values`
  // are those of the forward run.
  Cotangents backward(const Environment& values, const std::vector<Tensor>& cotangents) {
    for (size_t i = 0; i < cotangents.size(); ++i) {
      const Var& var = program_.outputs[i].var;
      if (var && cotangents[i].defined()) cotangents_.add(var, cotangents[i]);
    }
    const auto& equations = program_.equations;
    for (auto it = equations.rbegin(); it != equations.rend(); ++it) {
      if (is_active(it->inputs)) run(*it, values);
    }
    return std::move(cotangents_);
  }

 private:
  bool is_active(const std::vector<Atom>& atoms) const {
    for (const Atom& atom : atoms) {
      if (is_active(atom)) return true;
    }
    return false;
  }

  std::vector<bool> wanted(const Equation& equation) const {
    std::vector<bool> result;
    for (const Atom& atom : equation.inputs) {
      result.push_back(is_active(atom) && is_float(atom.type().dtype));
    }
    return result;
  }

  void run(const Equation& equation, const Environment& values) {
    std::vector<Tensor> outgoing;
    bool is_reached = false;
    for (const Var& var : equation.outputs) {
      outgoing.push_back(cotangents_.get(var));
      is_reached = is_reached || outgoing.back().defined();
    }
    if (!is_reached) return;
    const Primitive* primitive = find_primitive(equation.primitive);
    if (!primitive || !primitive->vjp) {
      fail(BALLAST_UNIMPLEMENTED, "[{}] the op has no gradient (at {})", equation.primitive,
           to_string(equation.where));
    }
    CallScope scope(equation.where, /*is_override=*/true);
    std::vector<Tensor> inputs = values.get(equation.inputs);
    std::vector<Tensor> outputs;
    for (const Var& var : equation.outputs) outputs.push_back(values.get(Atom{var, {}}));
    std::vector<Tensor> gradients =
        primitive->vjp({equation.attrs, inputs, outputs, outgoing, equation.bodies,
                        wanted(equation), residuals_[&equation]});
    for (size_t i = 0; i < gradients.size(); ++i) {
      if (gradients[i].defined() && is_active(equation.inputs[i])) {
        // Ops of bf16 or f16 may have f32 among their operands, and then f32 gradients.
        DType dtype = inputs[i].dtype();
        cotangents_.add(equation.inputs[i].var, ops::cast(gradients[i], dtype));
      }
    }
  }

  const Program& program_;
  std::unordered_set<const Variable*> active_;
  std::unordered_map<const Equation*, std::vector<Tensor>> residuals_;
  Cotangents cotangents_;
};

void check_loss(const Program& program) {
  if (program.outputs.empty()) {
    fail(BALLAST_INVALID_ARGUMENT, "[grad] the function returns nothing to differentiate");
  }
  const TensorType& type = program.outputs[0].type();
  if (!is_float(type.dtype) || !type.shape.empty()) {
    std::string line;
    for (const Equation& equation : program.equations) {
      for (const Var& var : equation.outputs) {
        if (var == program.outputs[0].var) line = " (at " + to_string(equation.where) + ")";
      }
    }
    fail(BALLAST_INVALID_ARGUMENT, "[grad] the loss is {}, expected a float scalar{}",
         to_string(type), line);
  }
}

// The variables to differentiate by; null where the program does not read a weight.
std::vector<Var> variables_of(const Program& program, const std::vector<size_t>& inputs,
                              const std::vector<Parameter>& weights) {
  std::vector<Var> wrt;
  for (size_t number : inputs) wrt.push_back(program.inputs.at(number));
  for (const Parameter& weight : weights) {
    Var found;
    for (const auto& state : program.states) {
      if (state.parameter == weight) found = state.var;
    }
    wrt.push_back(found);
  }
  return wrt;
}

Tensor zeros_like(const Parameter& parameter) {
  return Tensor::zeros(parameter.shape(), parameter.type().dtype);
}

}  // namespace

Program reverse(const Program& program, const std::vector<size_t>& inputs,
                const std::vector<Parameter>& weights) {
  check_loss(program);
  std::vector<Var> wrt = variables_of(program, inputs, weights);
  auto extended = [&](const std::vector<Tensor>& arguments) {
    Environment values;
    values.enter(program, arguments);
    Reverse reverse(program, wrt);
    reverse.forward(values);
    Tensor one = Tensor::scalar(1, program.outputs[0].type().dtype);
    Cotangents cotangents = reverse.backward(values, {one});
    std::vector<Tensor> outputs = values.get(program.outputs);
    for (size_t i = 0; i < wrt.size(); ++i) {
      outputs.push_back(wrt[i] ? cotangents.get_or_zero(wrt[i])
                               : zeros_like(weights[i - inputs.size()]));
    }
    values.assign_effects(program);
    return outputs;
  };
  return eliminate_dead_code(trace(extended, input_types(program)));
}

namespace {

std::vector<Var> wanted_inputs(const Program& program, const std::vector<bool>& wanted) {
  std::vector<Var> wrt;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i]) wrt.push_back(program.inputs.at(i));
  }
  return wrt;
}

}  // namespace

std::vector<Tensor> pullback(const Program& program, const std::vector<Tensor>& inputs,
                             const std::vector<Tensor>& cotangents, const std::vector<bool>& wanted,
                             std::vector<Tensor>* outputs) {
  Environment values;
  values.enter(program, inputs);
  Reverse reverse(program, wanted_inputs(program, wanted));
  reverse.forward(values);
  Cotangents found = reverse.backward(values, cotangents);
  std::vector<Tensor> gradients(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (wanted[i]) gradients[i] = found.get(program.inputs[i]);
  }
  if (outputs) *outputs = values.get(program.outputs);
  values.assign_effects(program);
  return gradients;
}

std::vector<bool> active_outputs(const Program& program, const std::vector<bool>& wanted) {
  Reverse reverse(program, wanted_inputs(program, wanted));
  std::vector<bool> active;
  for (const Atom& output : program.outputs) {
    active.push_back(reverse.is_active(output) && is_float(output.type().dtype));
  }
  return active;
}

namespace internal {

namespace {

// The leaf that is argument number `position`.
size_t leaf_of(int position, const std::vector<size_t>& leaf_counts) {
  if (position < 0 || static_cast<size_t>(position) >= leaf_counts.size()) {
    fail(BALLAST_INVALID_ARGUMENT, "[grad] there is no argument {}: the function was given {}",
         position, leaf_counts.size());
  }
  auto at = leaf_counts.begin() + position;
  if (*at != 1) {
    fail(BALLAST_INVALID_ARGUMENT, "[grad] argument {} is {} tensors, expected one", position, *at);
  }
  return std::accumulate(leaf_counts.begin(), at, size_t{0});
}

std::vector<Tensor> differentiated(const FlatFunction& fn, const std::vector<Tensor>& leaves,
                                   const std::vector<size_t>& leaf_counts,
                                   const GradRequest& request) {
  std::vector<size_t> inputs;
  for (int position : request.positions) {
    inputs.push_back(leaf_of(position, leaf_counts));
    const TensorType& type = leaves[inputs.back()].type();
    if (!is_float(type.dtype)) {
      fail(BALLAST_INVALID_ARGUMENT, "[grad] argument {} is {}, expected a float", position,
           to_string(type));
    }
  }
  Program program = trace(fn, types_of(leaves));
  if (program.outputs.size() > 1 && !request.has_aux) {
    fail(BALLAST_INVALID_ARGUMENT,
         "[grad] the function returns {} tensors, expected the loss alone; pass has_aux for more",
         program.outputs.size());
  }
  if (Trace::current()) return eval(reverse(program, inputs, request.weights), leaves);
  return eval(*request.cache->find(program, inputs, request.weights), program, leaves);
}

}  // namespace

std::vector<Tensor> run_grad(const FlatFunction& fn, const std::vector<Tensor>& leaves,
                             const std::vector<size_t>& leaf_counts, const GradRequest& request) {
  return at_line(request.where, [&] { return differentiated(fn, leaves, leaf_counts, request); });
}

}  // namespace internal

}  // namespace ballast
