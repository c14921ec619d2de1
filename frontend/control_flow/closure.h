// Closure conversion: functions traced apart (the branches of a cond, the body of a loop) take
// tensors and parameters from outside. Here these become operands, and what is assigned becomes
// results, so that a body is a closed program: a function of its inputs and nothing else.
#pragma once

#include "frontend/program/program.h"

#include <memory>
#include <vector>

namespace ballast {

// What programs take from outside, each once.
struct Outside {
  std::vector<Tensor> tensors;
  std::vector<Parameter> read;      // and not assigned by any of them
  std::vector<Parameter> assigned;  // read or not

  explicit Outside(const std::vector<const Program*>& programs);

  // The operands in front of a closed program's own: the tensors, then the values of `read`.
  std::vector<Tensor> constants() const;
  std::vector<Tensor> assigned_values() const;
  void assign(const std::vector<Tensor>& values) const;
};

// Where the assigned parameters stand among a closed program's inputs and outputs, counted without
// them and without constants.
struct Layout {
  size_t inputs_before = 0;
  size_t outputs_before = 0;
  bool returns_assigned = true;
};

// Inputs: constants, the program's inputs with the assigned parameters' old values among them.
// Outputs: the program's, with the assigned parameters' new values among them.
std::shared_ptr<const Program> close(const Program& program, const Outside& outside,
                                     const Layout& layout);

}  // namespace ballast
