#include "frontend/modes/donation.h"

#include <unordered_map>

namespace ballast {

namespace {

// When the variables of a program are made and last read, by number of the equation.
struct Times {
  std::unordered_map<const Variable*, size_t> made, read;

  explicit Times(const Program& program) {
    for (size_t i = 0; i < program.equations.size(); ++i) {
      for (const Atom& atom : program.equations[i].inputs) {
        if (atom.var) read[atom.var.get()] = i;
      }
      for (const Var& var : program.equations[i].outputs) made[var.get()] = i;
    }
  }

  // Whether `output` may be written where `input` lies as far as the order of equations tells.
  bool allow(const Variable* input, const Variable* output) const {
    const auto when = made.find(output);
    if (when == made.end()) return false;
    const auto last = read.find(input);
    return last == read.end() || last->second <= when->second;
  }
};

}  // namespace

void choose_outputs(std::vector<Donated>& donated, const Program& program) {
  const Times times(program);
  std::vector<bool> is_taken(program.outputs.size());
  for (Donated& argument : donated) {
    const Variable* input = program.inputs[argument.leaf].get();
    int best = 0;
    for (size_t i = 0; i < program.outputs.size(); ++i) {
      const Atom& output = program.outputs[i];
      if (is_taken[i] || output.type() != input->type || input->type.elements() == 0) continue;
      const int fitness = output.var.get() == input              ? 3
                          : times.allow(input, output.var.get()) ? 2
                                                                 : 1;
      if (fitness <= best) continue;
      best = fitness;
      argument.output = i;
    }
    if (argument.output) is_taken[*argument.output] = true;
  }
}

}  // namespace ballast
