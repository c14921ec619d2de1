#include "frontend/program/alike.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>

namespace ballast {

namespace {

bool is_same(const Where& a, const Where& b) {
  return a.line == b.line && (a.file == b.file || std::strcmp(a.file, b.file) == 0);
}

bool is_same_literal(const Tensor& a, const Tensor& b) {
  return a.type() == b.type() && std::memcmp(a.host_data(), b.host_data(), a.type().bytes()) == 0;
}

// Pairs the variables of two programs as they are defined.
class Matching {
 public:
  bool match(const Program& a, const Program& b) {
    pairs_.reserve(a.inputs.size() + a.states.size() + 2 * a.equations.size());
    const auto defines = [this](const auto& x, const auto& y) { return define(x.var, y.var); };
    const auto define_states = [this](const Program::State& x, const Program::State& y) {
      return x.parameter == y.parameter && define(x.var, y.var);
    };
    const auto equations = [this](const Equation& x, const Equation& y) { return match(x, y); };
    const auto effects = [this](const Program::Effect& x, const Program::Effect& y) {
      return x.parameter == y.parameter && is_same(x.value, y.value);
    };
    return all(a.inputs, b.inputs, [this](const Var& x, const Var& y) { return define(x, y); }) &&
           all(a.captured, b.captured, defines) && all(a.states, b.states, define_states) &&
           all(a.equations, b.equations, equations) && are_same(a.outputs, b.outputs) &&
           all(a.effects, b.effects, effects);
  }

 private:
  template <class T, class Same>
  static bool all(const std::vector<T>& a, const std::vector<T>& b, const Same& same) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), same);
  }

  bool define(const Var& a, const Var& b) {
    pairs_[a.get()] = b.get();
    return a->type == b->type;
  }

  bool is_same(const Atom& a, const Atom& b) const {
    if (!a.var || !b.var) return !a.var && !b.var && is_same_literal(a.literal, b.literal);
    const auto pair = pairs_.find(a.var.get());
    return pair != pairs_.end() && pair->second == b.var.get();
  }

  bool are_same(const std::vector<Atom>& a, const std::vector<Atom>& b) const {
    return all(a, b, [this](const Atom& x, const Atom& y) { return is_same(x, y); });
  }

  bool match(const Equation& a, const Equation& b) {
    const auto bodies = [](const auto& x, const auto& y) { return x == y || are_alike(*x, *y); };
    return a.primitive == b.primitive && a.attrs == b.attrs && are_same(a.inputs, b.inputs) &&
           ballast::is_same(a.where, b.where) && all(a.bodies, b.bodies, bodies) &&
           all(a.outputs, b.outputs, [this](const Var& x, const Var& y) { return define(x, y); });
  }

  std::unordered_map<const Variable*, const Variable*> pairs_;
};

}  // namespace

bool are_alike(const Program& a, const Program& b) { return Matching().match(a, b); }

}  // namespace ballast
