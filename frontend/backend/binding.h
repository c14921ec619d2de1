// Arguments of an executable in the ABI's form: device buffers, or host memory that the plugin
// stages within the call.
#pragma once

#include "frontend/tensor/tensor.h"

#include <ballast/graph.h>
#include <ballast/sink.h>

#include <vector>

namespace ballast {

// Binding: ballast_binding, or ballast_queue_binding with `slots` left to set. Keeps the buffers
// alive until clear(), to be called when the call has returned: it orders their release. Used again
// it needs no memory.
template <class Binding>
class InputBindings {
 public:
  Binding& add(const Tensor& tensor) {
    Binding binding = BALLAST_INIT(Binding);
    if (tensor.is_on_host() && tensor.elements() > 0 && !tensor.has_buffer()) {
      binding.host = tensor.host_data();
    } else {
      alive_.push_back(tensor.buffer());
      binding.buffer = alive_.back()->handle();
    }
    return bindings_.emplace_back(binding);
  }
  void clear() {
    bindings_.clear();
    alive_.clear();
  }
  const Binding* data() const { return bindings_.data(); }
  uint64_t size() const { return bindings_.size(); }

 private:
  std::vector<Binding> bindings_;
  std::vector<BufferPtr> alive_;
};

}  // namespace ballast
