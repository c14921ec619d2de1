// Cell: a layer with named parameters and sub-cells. A Cell is a handle: copies share parameters,
// children and the training flag, so members can be added by value in a constructor:
//   struct Net : nn::Cell {
//     nn::Dense fc{10, 1};
//     Net() { add("fc", fc); }
//     Tensor construct(const Tensor& x) override { return fc(x); }
//   };
#pragma once

#include "frontend/jit.h"
#include "frontend/operand.h"

#include <memory>
#include <string>
#include <vector>

namespace ballast::nn {

class Cell {
 public:
  Cell();
  virtual ~Cell() = default;

  virtual Tensor construct(const Tensor& x) = 0;
  // In Mode::kGraph the outermost call is compiled.
  Tensor operator()(const Operand& x);

  // With their full names ("0.weight"), in order of registration.
  std::vector<Parameter> parameters() const;
  std::vector<Parameter> trainable_params() const;
  Cell& set_train(bool is_training = true);  // reaches all sub-cells
  bool is_training() const;

 protected:
  // Registration. Names of what lies in a sub-cell are prefixed with the sub-cell's.
  Parameter add(const std::string& name, const Tensor& value, bool requires_grad = true);
  void add(const std::string& name, const Cell& child);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace ballast::nn
