#include "frontend/nn/cell.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <set>
#include <typeinfo>

namespace ballast::nn {

struct Cell::State {
  std::vector<Parameter> parameters;
  std::vector<std::shared_ptr<State>> children;
  Flag is_training;
  bool is_named = false;                    // lies in a cell
  JitCache compiled{JitOptions{}, "cell"};  // for GRAPH_MODE

  void collect(std::vector<Parameter>& all, std::set<const void*>& seen) const {
    for (const Parameter& parameter : parameters) {
      if (seen.insert(parameter.id()).second) all.push_back(parameter);
    }
    for (const auto& child : children) child->collect(all, seen);
  }
  void set_train(bool is_on) {
    is_training.set(is_on);
    for (const auto& child : children) child->set_train(is_on);
  }
};

Cell::Cell() : state_(std::make_shared<State>()) {}

namespace {

// As it is written: "Dropout", "Net".
std::string type_name(const std::type_info& type) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(type.name(), nullptr, nullptr, &status), &std::free);
  const std::string name = text ? text.get() : type.name();
  const size_t colon = name.rfind(':');
  return colon == std::string::npos ? name : name.substr(colon + 1);
}

[[noreturn]] void refuse_inputs(size_t count) {
  fail(BALLAST_INVALID_ARGUMENT, "[Cell] called with {} inputs: it has no construct that takes {}",
       count, count);
}

}  // namespace

Tensor Cell::construct(const Tensor&) { refuse_inputs(1); }
Tensor Cell::construct(const Tensor&, const Tensor&) { refuse_inputs(2); }
Tensor Cell::construct(const Tensor&, const Tensor&, const Tensor&) { refuse_inputs(3); }
Tensor Cell::construct(const Tensor&, const Tensor&, const Tensor&, const Tensor&) {
  refuse_inputs(4);
}

std::vector<Tensor> Cell::construct_all(const std::vector<Tensor>& inputs) {
  switch (inputs.size()) {
    case 1:
      return {construct(inputs[0])};
    case 2:
      return {construct(inputs[0], inputs[1])};
    case 3:
      return {construct(inputs[0], inputs[1], inputs[2])};
    default:
      return {construct(inputs[0], inputs[1], inputs[2], inputs[3])};
  }
}

Tensor Cell::call(const std::vector<Operand>& inputs) { return call_all(inputs)[0]; }

std::vector<Tensor> Cell::call_all(const std::vector<Operand>& inputs) {
  if (inputs.empty() || inputs.size() > 4) refuse_inputs(inputs.size());
  CallScope scope(inputs[0].where());
  // A number takes the first tensor's dtype, as in ops.
  auto first = std::find_if(inputs.begin(), inputs.end(),
                            [](const Operand& input) { return !input.is_number(); });
  std::vector<Tensor> tensors;
  for (const Operand& input : inputs) {
    tensors.push_back(first != inputs.end() && input.is_number() ? input.as(first->tensor().dtype())
                                                                 : input.tensor());
  }
  return at_line(inputs[0].where(), [&] {
    if (!compiles_calls()) return construct_all(tensors);
    const std::vector<size_t> leaf_counts(tensors.size(), 1);
    auto entry = state_->compiled.find(
        {tensors, leaf_counts.data(), leaf_counts.size()},
        [this](const std::vector<Tensor>& traced, std::any*) { return construct_all(traced); },
        JitCache::Use::kCall);
    return entry->compiled->run(tensors);
  });
}

std::vector<Parameter> Cell::parameters() const {
  std::vector<Parameter> all;
  std::set<const void*> seen;
  state_->collect(all, seen);
  return all;
}

std::vector<Parameter> Cell::trainable_params() const {
  std::vector<Parameter> trainable;
  for (const Parameter& parameter : parameters()) {
    if (parameter.requires_grad()) trainable.push_back(parameter);
  }
  return trainable;
}

std::vector<Parameter> Cell::untrainable_params() const {
  std::vector<Parameter> untrainable;
  for (const Parameter& parameter : parameters()) {
    if (!parameter.requires_grad()) untrainable.push_back(parameter);
  }
  return untrainable;
}

std::map<std::string, Parameter> Cell::parameters_dict() const {
  std::map<std::string, Parameter> named;
  for (const Parameter& parameter : parameters()) {
    if (!named.emplace(parameter.name(), parameter).second) {
      fail(BALLAST_INVALID_ARGUMENT, "[Cell] two parameters have the name \"{}\"",
           parameter.name());
    }
  }
  return named;
}

int64_t Cell::parameter_count() const {
  int64_t count = 0;
  for (const Parameter& parameter : parameters()) count += parameter.type().elements();
  return count;
}

std::string Cell::summary() const {
  const std::vector<Parameter> all = parameters();
  size_t names = 9, types = 4;  // as wide as their headings
  for (const Parameter& parameter : all) {
    names = std::max(names, parameter.name().size());
    types = std::max(types, to_string(parameter.type()).size());
  }
  std::string table =
      fmt::format("{:{}}  {:{}}  {:>10}  trained\n", "parameter", names, "type", types, "elements");
  int64_t trained = 0;
  for (const Parameter& parameter : all) {
    const int64_t elements = parameter.type().elements();
    if (parameter.requires_grad()) trained += elements;
    table += fmt::format("{:{}}  {:{}}  {:>10}  {}\n", parameter.name(), names,
                         to_string(parameter.type()), types, elements,
                         parameter.requires_grad() ? "yes" : "no");
  }
  return table + fmt::format("{} elements in {} parameters, {} of them trained\n",
                             parameter_count(), all.size(), trained);
}

Cell& Cell::set_train(bool is_training) {
  state_->set_train(is_training);
  return *this;
}

bool Cell::is_training() const {
  return state_->is_training.read([this] { return type_name(typeid(*this)) + "'s training flag"; });
}

size_t Cell::compile_count() const { return state_->compiled.compile_count(); }

std::string Cell::retrace_reason() const { return state_->compiled.retrace_reason(); }

Parameter Cell::add(const std::string& name, const Tensor& value, bool requires_grad) {
  state_->parameters.emplace_back(value, name, requires_grad);
  return state_->parameters.back();
}

void Cell::add(const std::string& name, const Parameter& parameter) {
  parameter.set_name(name);
  state_->parameters.push_back(parameter);
}

void Cell::add(const std::string& name, const Cell& child) {
  if (!child.state_->is_named) {
    child.state_->is_named = true;
    for (const Parameter& parameter : child.parameters()) {
      parameter.set_name(name + "." + parameter.name());
    }
  }
  add(child);
}

void Cell::add(const Cell& child) { state_->children.push_back(child.state_); }

}  // namespace ballast::nn
