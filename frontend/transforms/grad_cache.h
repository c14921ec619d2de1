// What a gradient function keeps between eager calls. Each call traces the user's function, which
// may do something else every time; where it did the same as in an earlier call, the gradients'
// program of that call is run again on the tensors captured now.
#pragma once

#include "frontend/program/program.h"

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace ballast::internal {

class GradCache {
 public:
  struct Entry {
    std::vector<size_t> inputs;  // that are differentiated by
    Program traced, reversed;    // without the values captured by `traced`
    // By capture of `reversed`: which one of `traced` it is, if any.
    std::vector<std::optional<size_t>> sources;
  };

  // reverse(program, inputs, weights), of the same weights in every call.
  std::shared_ptr<const Entry> find(const Program& program, const std::vector<size_t>& inputs,
                                    const std::vector<Parameter>& weights);

 private:
  std::mutex mutex_;
  std::vector<std::shared_ptr<const Entry>> entries_;  // the one used last in front
};

// Runs an entry found for `program`: returns the program's outputs, then the gradients.
std::vector<Tensor> eval(const GradCache::Entry& entry, const Program& program,
                         const std::vector<Tensor>& inputs);

}  // namespace ballast::internal
