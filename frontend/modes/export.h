// Exported functions: a function compiled for given types of arguments, with its weights, in one
// file that any process runs through the plugin alone (executable_load; examples/run_exported does
// so from C). MindSpore's export of a MINDIR.
//   export_function("net.ballast", net, images);
//   LoadedFunction again = load_function("net.ballast");
//   Tensor logits = again({images})[0];
//
// graph/exported.h says what the file holds. Parameters the function reads are its states, and keep
// changing in the loading process if the function assigns them; so do generators, from where they
// were. Tensors it closes over are stored likewise.
#pragma once

#include "frontend/modes/compiled.h"
#include "frontend/transforms/flattened.h"

#include <memory>
#include <string>
#include <vector>

namespace ballast {

// Atomic: the file is the old one until it is the whole new one.
void export_program(const std::string& path, const Program& program);

// Only the arguments' types matter. Leaves of trees become arguments and results in their order.
template <class F, class... Args>
void export_function(const std::string& path, F&& fn, const Args&... args) {
  auto arguments = std::make_tuple(as_argument(args)...);
  internal::Flattened flat(fn, arguments);
  export_program(path, eliminate_dead_code(trace(flat.function(), types_of(leaves_of(arguments)))));
}

// Copies share states. One call at a time.
class LoadedFunction {
 public:
  const std::vector<TensorType>& inputs() const;
  const std::vector<TensorType>& outputs() const;
  std::vector<Tensor> operator()(const std::vector<Tensor>& arguments) const;

 private:
  friend LoadedFunction load_function(const std::string& path, const JitOptions& options);
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

// On the current device. NOT_FOUND without the file, INVALID_ARGUMENT for one that is damaged or of
// another version.
LoadedFunction load_function(const std::string& path, const JitOptions& options = {});

}  // namespace ballast
