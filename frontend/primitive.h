// The primitive table: a primitive is a name, and each transform has a table of rules by name. A
// new op with a gradient is one row here. A name without a row can still be called if the plugin
// has it. Read-only after static initialisation.
#pragma once

#include "frontend/program.h"

#include <string>
#include <vector>

namespace ballast {

struct VjpArgs {
  const Attrs& attrs;
  const std::vector<Tensor>& inputs;
  const std::vector<Tensor>& outputs;
  const std::vector<Tensor>& cotangents;  // one per output; undefined stands for zero
};

// One gradient per input; undefined stands for zero (or: not differentiable in that input). Rules
// are written with ops, so gradients can be differentiated again.
using VjpRule = std::vector<Tensor> (*)(const VjpArgs&);

struct Primitive {
  std::string name;
  VjpRule vjp = nullptr;     // null: no gradient; differentiating it is an error
  bool is_identity = false;  // known to the frontend only: the output is input 0
  bool is_view = false;      // eager: the output shares input 0's buffer
};

// The row, or null.
const Primitive* find_primitive(const std::string& name);
std::vector<std::string> primitive_names();

}  // namespace ballast
