// Donation: a jitted function may be told which arguments a call may consume (JitOptions::donate).
// Where an output has a donated argument's type it is written into the argument's memory: the
// argument becomes a state of the executable and the output that state's update, so the plan says
// whether a kernel can work in place. What finds no such output goes back to the pool when the call
// has returned. Reading a donated tensor afterwards is an error, through all its copies; other
// tensors and parameters that share its memory keep their value, which is copied first.
#pragma once

#include "frontend/program/program.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace ballast {

struct Donated {
  size_t leaf;                              // of the arguments
  std::shared_ptr<const std::string> name;  // "argument 0 of the function jitted at train.cpp:12"
  std::optional<size_t> output;             // the one that takes its memory
};

// Chooses the outputs: one of the same type each, if there is one that nobody took: the argument
// itself, or the first that is made after the argument was last read, or else the first.
void choose_outputs(std::vector<Donated>& donated, const Program& program);

}  // namespace ballast
