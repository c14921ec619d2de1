#include "frontend/program/trace.h"

#include "frontend/modes/eager.h"
#include "frontend/program/primitive.h"
#include "frontend/tensor/operand.h"

namespace ballast {

namespace {

thread_local std::vector<Trace*> open_traces;

std::vector<TensorType> types_of_inputs(const std::string& primitive,
                                        const std::vector<Tensor>& inputs) {
  std::vector<TensorType> types;
  types.reserve(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    check_defined(primitive, i, inputs[i]);
    types.push_back(inputs[i].type());
  }
  return types;
}

}  // namespace

std::vector<Tensor> apply_primitive(const std::string& primitive, const std::vector<Tensor>& inputs,
                                    const Attrs& attrs, const Where& where, const Bodies& bodies) {
  Where line = CallScope::resolve(where);
  return at_line(line, [&] {
    if (Trace* trace = Trace::current()) {
      return trace->add_equation(primitive, inputs, attrs, line, bodies);
    }
    return run_eagerly(primitive, inputs, attrs, bodies);
  });
}

Trace* Trace::current() { return open_traces.empty() ? nullptr : open_traces.back(); }

Tensor Trace::add_input(const TensorType& type) {
  program_.inputs.push_back(std::make_shared<Variable>(Variable{type}));
  return Tensor::of_variable(program_.inputs.back(), shared_from_this());
}

Atom Trace::atom_of(const Tensor& tensor, const std::string& user) {
  if (!tensor.defined()) {
    fail(BALLAST_INVALID_ARGUMENT, "[{}] given an undefined tensor", user);
  }
  if (tensor.owner().get() == this) return {tensor.variable(), {}};
  if (tensor.is_traced() && !tensor.owner()->is_open_) {
    fail(BALLAST_FAILED_PRECONDITION,
         "[{}] given a traced {} whose trace has ended: it leaked out of a traced function", user,
         to_string(tensor.type()));
  }
  tensor.check_live();
  if (tensor.is_on_host() && tensor.elements() == 1) return {nullptr, tensor};
  const void* key = tensor.is_traced()    ? tensor.variable().get()
                    : tensor.is_on_host() ? tensor.host_data()
                                          : static_cast<const void*>(tensor.buffer().get());
  // Two views of one buffer differ in type only.
  auto [first, last] = captured_.equal_range(key);
  for (auto it = first; it != last; ++it) {
    if (it->second->type == tensor.type()) return {it->second, {}};
  }
  auto var = std::make_shared<Variable>(Variable{tensor.type()});
  program_.captured.push_back({var, tensor});
  captured_.emplace(key, var);
  return {var, {}};
}

std::vector<Tensor> Trace::add_equation(const std::string& primitive,
                                        const std::vector<Tensor>& inputs, const Attrs& attrs,
                                        const Where& where, const Bodies& bodies) {
  Equation equation{primitive, {}, attrs, {}, where, bodies};
  equation.inputs.reserve(inputs.size());
  for (const Tensor& input : inputs) equation.inputs.push_back(atom_of(input, primitive));
  std::vector<Tensor> outputs;
  for (TensorType& type : infer(primitive, types_of_inputs(primitive, inputs), attrs, bodies)) {
    equation.outputs.push_back(std::make_shared<Variable>(Variable{std::move(type)}));
    outputs.push_back(Tensor::of_variable(equation.outputs.back(), shared_from_this()));
  }
  program_.equations.push_back(std::move(equation));
  return outputs;
}

Tensor Trace::read(const Parameter& parameter) {
  Tensor& value = current_values_[parameter.id()];
  if (!value.defined()) {
    auto var = std::make_shared<Variable>(Variable{parameter.type()});
    program_.states.push_back({var, parameter});
    value = Tensor::of_variable(var, shared_from_this());
  }
  return value;
}

void Trace::assign(const Parameter& parameter, const Tensor& value) {
  Atom atom = atom_of(value, "assign");
  auto [number, is_new] = effect_numbers_.emplace(parameter.id(), program_.effects.size());
  if (is_new) {
    program_.effects.push_back({parameter, atom});
  } else {
    program_.effects[number->second].value = atom;
  }
  current_values_[parameter.id()] = value;
}

Program Trace::finish(const std::vector<Tensor>& outputs) {
  for (const Tensor& output : outputs) program_.outputs.push_back(atom_of(output, "return"));
  current_values_.clear();  // they own the trace
  return std::move(program_);
}

Program trace(const FlatFunction& fn, const std::vector<TensorType>& inputs) {
  auto recorded = std::make_shared<Trace>();
  std::vector<Tensor> arguments;
  for (const TensorType& type : inputs) arguments.push_back(recorded->add_input(type));

  struct Opened {
    explicit Opened(Trace* trace) : trace_(trace) { open_traces.push_back(trace); }
    ~Opened() {
      open_traces.pop_back();
      trace_->is_open_ = false;
      trace_->current_values_.clear();
    }
    Trace* trace_;
  } opened(recorded.get());
  return recorded->finish(fn(arguments));
}

}  // namespace ballast
