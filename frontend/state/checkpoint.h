// Checkpoints: named tensors in a safetensors file, which Python's safetensors reads and writes
// too. To resume a training run with the same bits, save everything that changes:
//   StateDict state = StateDict(net).add("optimizer.", optimizer).add("generator", generator);
//   save_checkpoint("run.safetensors", state, {{"epoch", "3"}});
//   load_into(state, "run.safetensors");        // in another process, with a new net
// An optimizer's states include its step count and learning rate, a cell's its running statistics.
// Not to be called while a function is traced.
#pragma once

#include "frontend/nn/cell.h"
#include "frontend/nn/optimizer.h"
#include "frontend/state/safetensors.h"
#include "frontend/tensor/generator.h"

#include <map>
#include <string>
#include <variant>
#include <vector>

namespace ballast {

// Names for what a checkpoint holds; shares the parameters and generators themselves.
class StateDict {
 public:
  StateDict() = default;
  StateDict(const nn::Cell& cell) { add("", cell); }
  StateDict(const std::vector<Parameter>& parameters) { add("", parameters); }

  // A name given twice is an error.
  StateDict& add(const std::string& prefix, const nn::Cell& cell);
  StateDict& add(const std::string& prefix, const nn::Optimizer& optimizer);
  StateDict& add(const std::string& prefix, const std::vector<Parameter>& parameters);
  StateDict& add(const std::string& name, const Parameter& parameter);
  StateDict& add(const std::string& name, const Generator& generator);

  TensorMap tensors() const;  // the values now

 private:
  friend class Loading;
  using Entry = std::variant<Parameter, Generator>;
  void insert(const std::string& name, Entry entry);

  std::map<std::string, Entry> entries_;
};

// The file is replaced at once, or stays as it was. Metadata are strings of the caller's.
void save_checkpoint(const std::string& path, const TensorMap& tensors,
                     const Metadata& metadata = {});
void save_checkpoint(const std::string& path, const StateDict& state,
                     const Metadata& metadata = {});

struct Checkpoint {
  TensorMap tensors;  // in host memory
  Metadata metadata;
};
Checkpoint load_checkpoint(const std::string& path);

enum class LoadMode {
  kStrict,   // names and types must be the same on both sides, else an Error with the report
  kPartial,  // what fits is loaded
};

struct LoadReport {
  struct Mismatch {
    std::string name;
    TensorType expected, found;
  };
  std::vector<std::string> loaded;
  std::vector<std::string> missing;     // in the state, not in the file
  std::vector<std::string> unexpected;  // in the file, not in the state
  std::vector<Mismatch> mismatched;

  bool is_complete() const { return missing.empty() && unexpected.empty() && mismatched.empty(); }
  // "12 loaded; missing: fc.bias; mismatched: fc.weight is f32[3, 4], the file has f32[4, 3]"
  std::string to_string() const;
};

// All of it or, when anything goes wrong, nothing.
LoadReport load_into(const StateDict& state, const std::string& path,
                     LoadMode mode = LoadMode::kStrict);
LoadReport load_into(const StateDict& state, const TensorMap& tensors,
                     LoadMode mode = LoadMode::kStrict);

}  // namespace ballast
