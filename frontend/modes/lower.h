// Lowering: a Program becomes a graph of the plugin and is compiled for a device.
#pragma once

#include "frontend/modes/compiled.h"
#include "frontend/program/program.h"

#include <string>
#include <vector>

namespace ballast {

struct Lowered {
  ballast_executable* executable = nullptr;  // owned by the caller
  // The executable's states by number, after the donated ones: what the program reads or updates.
  std::vector<Parameter> states;
  std::vector<bool> is_updated;
};

// The graph as text, the values of whose states are those of `states` in order. The program has
// captured nothing.
struct GraphText {
  std::string text;
  std::vector<Parameter> states;
};
GraphText graph_text(const Program& program);

ballast_compile_options to_abi(const JitOptions& options);

// The executable's inputs are the program's inputs, then its captured tensors.
// The donated inputs that have an output are states instead, the first of all, and these outputs
// their updates.
Lowered lower(const Program& program, Device& device, const JitOptions& options,
              const std::vector<Donated>& donated = {});

}  // namespace ballast
