#include "frontend/tensor/parameter.h"

#include "frontend/program/token.h"
#include "frontend/program/trace.h"

namespace ballast {

// The buffer is held directly, not through a Tensor: every tensor read from the parameter is then
// one more owner of the buffer, which is what bound_buffer looks at.
struct Parameter::Node {
  std::string name;
  bool requires_grad = true;
  TensorType type;
  BufferPtr buffer;
};

Parameter::Parameter(const Tensor& value, std::string name, bool requires_grad)
    : node_(std::make_shared<Node>()) {
  node_->name = std::move(name);
  node_->requires_grad = requires_grad;
  node_->type = value.type();
  node_->buffer = value.buffer();
}

const std::string& Parameter::name() const { return node_->name; }

void Parameter::set_name(std::string name) const { node_->name = std::move(name); }

const TensorType& Parameter::type() const { return node_->type; }

bool Parameter::requires_grad() const { return node_->requires_grad; }

void Parameter::set_requires_grad(bool requires_grad) const {
  node_->requires_grad = requires_grad;
}

Tensor Parameter::value() const {
  if (!node_) fail(BALLAST_INVALID_ARGUMENT, "[parameter] the parameter is undefined");
  if (Trace* trace = Trace::current()) return trace->read(*this);
  return Tensor::of_buffer(node_->type, node_->buffer);
}

void Parameter::assign(const Tensor& value, Where where) const {
  if (value.type() != type()) {
    fail(BALLAST_INVALID_ARGUMENT, "[assign] parameter {} is {}, the new value is {} (at {})",
         name(), ballast::to_string(type()), ballast::to_string(value.type()),
         ballast::to_string(where));
  }
  if (Trace* trace = Trace::current()) {
    trace->assign(*this, value);
  } else if (!is_token(type())) {  // which has no value; threads share one
    node_->buffer = at_line(where, [&] { return value.buffer(); });
  }
}

const BufferPtr& Parameter::bound_buffer(bool is_written) const {
  BufferPtr& buffer = node_->buffer;
  if (is_written && is_shared(buffer)) buffer = copy_of(*buffer);
  return buffer;
}

}  // namespace ballast
