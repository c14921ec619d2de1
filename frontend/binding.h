// Arguments of an executable in the ABI's form: device buffers, or host memory that the plugin
// stages within the call.
#pragma once

#include "frontend/tensor.h"

#include <ballast/graph.h>

#include <vector>

namespace ballast {

// Keeps the buffers alive until clear(), to be called when the call has returned: it orders their
// release. Used again it needs no memory.
class InputBindings {
 public:
  void add(const Tensor& tensor) {
    ballast_binding binding = BALLAST_INIT(ballast_binding);
    if (tensor.is_on_host() && tensor.elements() > 0 && !tensor.has_buffer()) {
      binding.host = tensor.host_data();
    } else {
      alive_.push_back(tensor.buffer());
      binding.buffer = alive_.back()->handle();
    }
    bindings_.push_back(binding);
  }
  void clear() {
    bindings_.clear();
    alive_.clear();
  }
  const ballast_binding* data() const { return bindings_.data(); }
  uint64_t size() const { return bindings_.size(); }

 private:
  std::vector<ballast_binding> bindings_;
  std::vector<BufferPtr> alive_;
};

}  // namespace ballast
