// What vjp() keeps of a function at a point: the outputs, and the linear map from their cotangents
// to the gradients of the inputs. The forward pass runs once; the map is a Program of its own that
// reads what it needs of that pass (the residuals) and can be run any number of times.
#pragma once

#include "frontend/program/program.h"

#include <vector>

namespace ballast {

class Linearized {
 public:
  // Runs `program` now, or in the enclosing trace.
  Linearized(const Program& program, const std::vector<Tensor>& inputs);

  const std::vector<Tensor>& outputs() const { return outputs_; }
  // One gradient per input of a float type, undefined for others. An undefined cotangent stands for
  // zero; outputs of other types have none. Throws if one does not have its output's type.
  std::vector<Tensor> pull(const std::vector<Tensor>& cotangents) const;

 private:
  std::vector<TensorType> input_types_;
  std::vector<Tensor> outputs_;
  std::vector<Tensor> residuals_;
  std::vector<size_t> reached_;  // inputs that the outputs depend on
  Program transposed_;           // residuals, cotangents of float outputs -> gradients of reached_
};

}  // namespace ballast
