#include "frontend/nn/cell.h"

namespace ballast::nn {

struct Cell::State {
  std::vector<Parameter> parameters;
  std::vector<std::shared_ptr<State>> children;
  bool is_training = false;
  // Compiled forms for Mode::kGraph.
  JitCache compiled{JitOptions{}};

  void collect(std::vector<Parameter>& all) const {
    all.insert(all.end(), parameters.begin(), parameters.end());
    for (const auto& child : children) child->collect(all);
  }
  void set_train(bool is_on) {
    is_training = is_on;
    for (const auto& child : children) child->set_train(is_on);
  }
};

Cell::Cell() : state_(std::make_shared<State>()) {}

Tensor Cell::operator()(const Operand& x) {
  CallScope scope(x.where());
  Tensor input = x.tensor();
  if (execution_mode() == Mode::kPyNative || Trace::current()) return construct(input);
  // The training flag decides what is traced, so it belongs to the signature.
  auto entry = state_->compiled.find({input.type()}, {1, size_t{state_->is_training}},
                                     [this](const std::vector<Tensor>& traced, std::any*) {
                                       return std::vector<Tensor>{construct(traced[0])};
                                     });
  return entry->compiled->run({input})[0];
}

std::vector<Parameter> Cell::parameters() const {
  std::vector<Parameter> all;
  state_->collect(all);
  return all;
}

std::vector<Parameter> Cell::trainable_params() const {
  std::vector<Parameter> trainable;
  for (const Parameter& parameter : parameters()) {
    if (parameter.requires_grad()) trainable.push_back(parameter);
  }
  return trainable;
}

Cell& Cell::set_train(bool is_training) {
  state_->set_train(is_training);
  return *this;
}

bool Cell::is_training() const { return state_->is_training; }

Parameter Cell::add(const std::string& name, const Tensor& value, bool requires_grad) {
  state_->parameters.emplace_back(value, name, requires_grad);
  return state_->parameters.back();
}

void Cell::add(const std::string& name, const Cell& child) {
  for (const Parameter& parameter : child.parameters()) {
    parameter.set_name(name + "." + parameter.name());
  }
  state_->children.push_back(child.state_);
}

}  // namespace ballast::nn
