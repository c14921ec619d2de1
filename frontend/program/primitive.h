// The primitive table: a primitive is a name, and each transform has a table of rules by name. A
// new op with a gradient is one row here. A name without a row can still be called if the plugin
// has it. Read-only after static initialisation.
#pragma once

#include "frontend/program/program.h"

#include <string>
#include <vector>

namespace ballast {

struct VjpArgs {
  const Attrs& attrs;
  const std::vector<Tensor>& inputs;
  const std::vector<Tensor>& outputs;
  const std::vector<Tensor>& cotangents;  // one per output; undefined stands for zero
  const Bodies& bodies;
  const std::vector<bool>& wanted;       // by input: whether its gradient is asked for
  const std::vector<Tensor>& residuals;  // what `augment` gave after the outputs
};

// One gradient per input; undefined stands for zero (or: not differentiable in that input). Rules
// are written with ops, so gradients can be differentiated again.
using VjpRule = std::vector<Tensor> (*)(const VjpArgs&);

struct AugmentArgs {
  const Attrs& attrs;
  const std::vector<Tensor>& inputs;
  const Bodies& bodies;
  const std::vector<bool>& wanted;
};
// The outputs, then residuals: runs in place of the equation where it is differentiated.
using AugmentRule = std::vector<Tensor> (*)(const AugmentArgs&);

struct JvpArgs {
  const std::string& primitive;
  const Attrs& attrs;
  const std::vector<Tensor>& inputs;
  const std::vector<Tensor>& outputs;
  const std::vector<Tensor>& tangents;  // one per input; undefined stands for zero
  const Bodies& bodies;
};
// The tangent of each output; undefined stands for zero. Written with ops as well.
using JvpRule = std::vector<Tensor> (*)(const JvpArgs&);

struct VmapArgs {
  const std::string& primitive;
  const Attrs& attrs;
  const std::vector<Tensor>& inputs;       // a mapped one has a new axis in front, of extent `size`
  const std::vector<bool>& is_mapped;      // at least one is
  const std::vector<TensorType>& outputs;  // without the new axis
  int64_t size;
  const Bodies& bodies;
};
// The outputs, each with the new axis in front.
using VmapRule = std::vector<Tensor> (*)(const VmapArgs&);

using InferRule = std::vector<TensorType> (*)(const std::vector<TensorType>&, const Attrs&,
                                              const Bodies&);
using RunRule = std::vector<Tensor> (*)(const std::vector<Tensor>&, const Attrs&, const Bodies&);

struct Primitive {
  std::string name;
  VjpRule vjp = nullptr;          // null: no gradient; differentiating it is an error
  JvpRule jvp = nullptr;          // null: the transpose of vjp
  VmapRule vmap = nullptr;        // null: example after example
  bool is_identity = false;       // known to the frontend only: output i is input i
  bool is_view = false;           // eager: the output shares input 0's buffer
  InferRule infer = nullptr;      // null: the plugin knows
  RunRule run = nullptr;          // eager; null: the plugin runs it
  AugmentRule augment = nullptr;  // null: the gradient needs inputs and outputs only
};

// Throws where input `i` is an undefined tensor.
void check_defined(const std::string& primitive, size_t i, const Tensor& input);

// The types of a primitive's results. The message starts with the primitive in brackets.
std::vector<TensorType> infer(const std::string& primitive, const std::vector<TensorType>& inputs,
                              const Attrs& attrs, const Bodies& bodies);

// The row, or null.
const Primitive* find_primitive(const std::string& name);
std::vector<std::string> primitive_names();

}  // namespace ballast
