// Tracing: runs a function on variables instead of values and records what it does as a Program.
// Exactly two interpreters exist, eager and tracing; apply_primitive() is the fork between them.
// Traces nest (grad inside jit); each belongs to the thread that opened it.
#pragma once

#include "frontend/program/program.h"

#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

namespace ballast {

using FlatFunction = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

// The Program of `fn` for arguments of these types.
Program trace(const FlatFunction& fn, const std::vector<TensorType>& inputs);

// Applies a primitive: launches it, or appends an equation to the innermost trace.
std::vector<Tensor> apply_primitive(const std::string& primitive, const std::vector<Tensor>& inputs,
                                    const Attrs& attrs, const Where& where,
                                    const Bodies& bodies = {});

class Trace : public std::enable_shared_from_this<Trace> {
 public:
  // The innermost open trace of this thread, or null.
  static Trace* current();

  Tensor add_input(const TensorType& type);
  std::vector<Tensor> add_equation(const std::string& primitive, const std::vector<Tensor>& inputs,
                                   const Attrs& attrs, const Where& where, const Bodies& bodies);
  Tensor read(const Parameter& parameter);
  void assign(const Parameter& parameter, const Tensor& value);
  Program finish(const std::vector<Tensor>& outputs);

 private:
  friend Program trace(const FlatFunction&, const std::vector<TensorType>&);
  Atom atom_of(const Tensor& tensor, const std::string& user);

  Program program_;
  bool is_open_ = true;
  std::unordered_map<const void*, Tensor> current_values_;  // by Parameter::id
  std::unordered_map<const void*, size_t> effect_numbers_;  // by Parameter::id
  std::unordered_multimap<const void*, Var> captured_;      // by buffer, variable or host data
};

}  // namespace ballast
