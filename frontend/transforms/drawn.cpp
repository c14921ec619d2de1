#include "frontend/transforms/drawn.h"

#include "frontend/control_flow/control_flow_rules.h"

#include <algorithm>

namespace ballast {

namespace {

using Blocks = std::unordered_map<const Variable*, int64_t>;

// From input `input` of a body to its output `output`; none: this is not the state any more.
std::optional<int64_t> through(const Program& body, size_t input, size_t output) {
  const Blocks blocks = advances_of(body, body.inputs[input].get());
  const auto found = blocks.find(body.outputs[output].var.get());
  if (found == blocks.end()) return std::nullopt;
  return found->second;
}

// The branches' longest way; a part of the sequence as long as that is enough for either.
std::optional<int64_t> through_cond(const Equation& equation, size_t input, size_t output) {
  int64_t longest = 0;
  for (const auto& branch : equation.bodies) {
    const std::optional<int64_t> blocks = through(*branch, input - 1, output);
    if (!blocks || *blocks == kUnknownBlocks) return blocks;
    longest = std::max(longest, *blocks);
  }
  return longest;
}

std::optional<int64_t> through_scan(const Equation& equation, size_t input, size_t output) {
  const ScanForm form(equation.attrs);
  if (output >= form.carried || input != form.consts + output) return std::nullopt;
  const std::optional<int64_t> blocks = through(*equation.bodies[0], input, output);
  return blocks && *blocks != kUnknownBlocks ? *blocks * form.length : blocks;
}

std::optional<int64_t> through_while(const Equation& equation, size_t input, size_t output) {
  const auto consts = static_cast<size_t>(int_attr(equation.attrs, "consts"));
  if (input != consts + output) return std::nullopt;
  const std::optional<int64_t> blocks = through(*equation.bodies[1], input, output);
  return blocks && *blocks != 0 ? kUnknownBlocks : blocks;
}

std::optional<int64_t> blocks_of(const Equation& equation, size_t input, size_t output) {
  const std::string& name = equation.primitive;
  if (name == "random_advance") return int_attr(equation.attrs, "blocks");
  if (name == "checkpoint" && input == output) return 0;
  if (name == "cond" && input > 0) return through_cond(equation, input, output);
  if (name == "scan") return through_scan(equation, input, output);
  if (name == "while") return through_while(equation, input, output);
  return std::nullopt;
}

}  // namespace

std::vector<Advance> advances_of(const Equation& equation, const Variable* state) {
  std::vector<Advance> advances;
  for (size_t i = 0; i < equation.inputs.size(); ++i) {
    if (equation.inputs[i].var.get() != state) continue;
    for (size_t k = 0; k < equation.outputs.size(); ++k) {
      if (equation.outputs[k]->type != state->type) continue;
      if (const auto blocks = blocks_of(equation, i, k)) advances.push_back({i, k, *blocks});
    }
  }
  return advances;
}

std::unordered_map<const Variable*, int64_t> advances_of(const Program& program,
                                                         const Variable* state) {
  Blocks blocks{{state, 0}};
  for (const Equation& equation : program.equations) {
    const Blocks before = blocks;
    for (const auto& [var, count] : before) {
      for (const Advance& advance : advances_of(equation, var)) {
        // What a checkpoint draws it draws again, from the first state on.
        const bool is_drawn_again = equation.primitive == "checkpoint" && count != 0;
        const bool is_known =
            count != kUnknownBlocks && advance.blocks != kUnknownBlocks && !is_drawn_again;
        blocks[equation.outputs[advance.output].get()] =
            is_known ? count + advance.blocks : kUnknownBlocks;
      }
    }
  }
  return blocks;
}

}  // namespace ballast
