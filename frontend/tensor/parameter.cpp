#include "frontend/tensor/parameter.h"

#include "frontend/program/token.h"
#include "frontend/program/trace.h"

#include <mutex>

namespace ballast {

// The buffer is held directly, not through a Tensor: every tensor read from the parameter is then
// one more owner of the buffer, which is what bound_buffer looks at.
struct Parameter::Node {
  std::string name;
  bool requires_grad = true;
  TensorType type;
  std::mutex mutex;  // of what follows
  BufferPtr buffer;
  int writers = 0;  // calls that are being submitted and write into the buffer
};

Parameter::Parameter(const Tensor& value, std::string name, bool requires_grad)
    : node_(std::make_shared<Node>()) {
  node_->name = std::move(name);
  node_->requires_grad = requires_grad;
  node_->type = value.type();
  node_->buffer = value.buffer();
}

Parameter::Node& Parameter::node() const {
  if (!node_) fail(BALLAST_INVALID_ARGUMENT, "[parameter] the parameter is undefined");
  return *node_;
}

const std::string& Parameter::name() const { return node().name; }

void Parameter::set_name(std::string name) const { node().name = std::move(name); }

const TensorType& Parameter::type() const { return node().type; }

bool Parameter::requires_grad() const { return node().requires_grad; }

void Parameter::set_requires_grad(bool requires_grad) const {
  node().requires_grad = requires_grad;
}

Tensor Parameter::value() const {
  Node& self = node();
  if (Trace* trace = Trace::current()) return trace->read(*this);
  std::lock_guard lock(self.mutex);
  return Tensor::of_buffer(self.type, self.writers > 0 ? copy_of(*self.buffer) : self.buffer);
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
    BufferPtr buffer = at_line(where, [&] { return value.buffer(); });
    std::lock_guard lock(node_->mutex);
    node_->buffer.swap(buffer);
  }
}

BufferPtr Parameter::bound_buffer(bool is_written) const {
  Node& self = node();
  std::lock_guard lock(self.mutex);
  if (is_written) {
    if (is_shared(self.buffer)) self.buffer = copy_of(*self.buffer);
    ++self.writers;
  }
  return self.buffer;
}

void Parameter::end_write() const {
  Node& self = node();
  std::lock_guard lock(self.mutex);
  --self.writers;
}

}  // namespace ballast
