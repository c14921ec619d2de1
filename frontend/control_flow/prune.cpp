#include "frontend/control_flow/prune.h"

#include <algorithm>
#include <unordered_set>

namespace ballast {

namespace {

using Mask = std::vector<bool>;

template <class T>
std::vector<T> chosen(const std::vector<T>& list, const Mask& mask) {
  std::vector<T> result;
  for (size_t i = 0; i < list.size(); ++i) {
    if (mask[i]) result.push_back(list[i]);
  }
  return result;
}

// Which inputs a body reads.
Mask reads_of(const Program& body) {
  std::unordered_set<const Variable*> read;
  auto note = [&](const Atom& atom) {
    if (atom.var) read.insert(atom.var.get());
  };
  for (const Equation& equation : body.equations) {
    for (const Atom& atom : equation.inputs) note(atom);
  }
  for (const Atom& atom : body.outputs) note(atom);
  Mask reads;
  for (const Var& var : body.inputs) reads.push_back(read.count(var.get()) > 0);
  return reads;
}

class Pruner {
 public:
  Pruner(const Equation& equation, Mask live) : equation_(equation), live_(std::move(live)) {
    if (equation.primitive == "cond") {
      leading_ = 1;
    } else {
      consts_ = static_cast<size_t>(int_attr(equation.attrs, "consts"));
      carried_ = equation.primitive == "scan"
                     ? static_cast<size_t>(int_attr(equation.attrs, "carried"))
                     : equation.outputs.size();
    }
  }

  Equation run() {
    while (needs_more_of_the_carry()) {
    }
    Mask operands = reads_;
    for (size_t i = 0; i < carried_; ++i) operands[consts_ + i] = live_[i];
    Equation result = equation_;
    for (auto& [name, value] : result.attrs) {
      if (name == "consts") value = count(operands, 0, consts_);
      if (name == "carried") value = count(live_, 0, carried_);
    }
    Mask inputs = operands;
    inputs.insert(inputs.begin(), leading_, true);
    result.inputs = chosen(equation_.inputs, inputs);
    result.outputs = chosen(equation_.outputs, live_);
    result.bodies.clear();
    for (Program& body : bodies_) {
      body.inputs = chosen(body.inputs, operands);
      result.bodies.push_back(std::make_shared<const Program>(std::move(body)));
    }
    return result;
  }

 private:
  static int64_t count(const Mask& mask, size_t begin, size_t end) {
    auto first = mask.begin();
    return std::count(first + static_cast<std::ptrdiff_t>(begin),
                      first + static_cast<std::ptrdiff_t>(end), true);
  }

  // The bodies of what is live; whether they read a part of the carry that was not.
  bool needs_more_of_the_carry() {
    bodies_.clear();
    reads_.assign(equation_.inputs.size() - leading_, false);
    for (const auto& body : equation_.bodies) {
      Program live = *body;
      bool is_condition = equation_.primitive == "while" && bodies_.empty();
      if (!is_condition) live.outputs = chosen(live.outputs, live_);
      bodies_.push_back(eliminate_dead_code(live));
      Mask reads = reads_of(bodies_.back());
      for (size_t i = 0; i < reads.size(); ++i) reads_[i] = reads_[i] || reads[i];
    }
    bool has_more = false;
    for (size_t i = 0; i < carried_; ++i) {
      if (!reads_[consts_ + i] || live_[i]) continue;
      live_[i] = has_more = true;
    }
    return has_more;
  }

  const Equation& equation_;
  Mask live_;  // by output
  size_t leading_ = 0, consts_ = 0, carried_ = 0;
  std::vector<Program> bodies_;
  Mask reads_;  // by operand: whether a body reads it
};

}  // namespace

Equation prune(const Equation& equation, const std::function<bool(const Var&)>& is_live) {
  const std::string& name = equation.primitive;
  if (name != "cond" && name != "while" && name != "scan") return equation;
  Mask live;
  for (const Var& var : equation.outputs) live.push_back(is_live(var));
  return Pruner(equation, std::move(live)).run();
}

}  // namespace ballast
