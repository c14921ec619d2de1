// Parameter: a named, assignable tensor that stays on the device; copies share it. Inside a trace a
// read becomes a state of the Program and an assignment one of its effects. Executables update it
// in place, but never a tensor that was read from it (the buffer is copied while shared).
// value() and assign() may be called from any thread, also while a jitted call in another updates
// the parameter; of two threads that assign or update it at once, one wins. During a sunk run it
// has the value of one step after the other. What names it, as set_name(), is for one thread.
#pragma once

#include "frontend/tensor/tensor.h"

#include <memory>
#include <string>

namespace ballast {

class Parameter {
 public:
  Parameter() = default;
  Parameter(const Tensor& value, std::string name, bool requires_grad = true);

  const std::string& name() const;
  void set_name(std::string name) const;
  const TensorType& type() const;
  const Shape& shape() const { return type().shape; }
  bool requires_grad() const;
  // Off: frozen, no longer one of a cell's trainable_params(). Optimizers made before keep it.
  void set_requires_grad(bool requires_grad) const;

  Tensor value() const;
  operator Tensor() const { return value(); }
  // The new value must have the parameter's type.
  void assign(const Tensor& value, Where where = Where::here()) const;

  bool defined() const { return node_ != nullptr; }
  bool operator==(const Parameter& o) const { return node_ == o.node_; }
  const void* id() const { return node_.get(); }

  // For executables: the device buffer. One that is about to be written is made unshared first,
  // and value() copies it until end_write().
  BufferPtr bound_buffer(bool is_written) const;
  void end_write() const;

 private:
  struct Node;
  Node& node() const;  // throws for an undefined parameter
  std::shared_ptr<Node> node_;
};

}  // namespace ballast
