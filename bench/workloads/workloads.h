// The named workloads that other frameworks are measured on too (bench/compare.py), in the modes
// that Ballast has. Definitions, inputs and checksums are those of the peers' program.
#pragma once

#include "frontend/tensor/tensor.h"

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace workloads {

enum class Mode { kEager, kJit, kSink };

using Arrays = std::map<std::string, ballast::Tensor>;  // on the device

// One workload in one mode, ready to run.
struct Run {
  std::function<void()> call;  // over when the device is done
  uint64_t steps_per_call = 1;
  // Training: the losses of the first three steps, to be asked for once and before anything else.
  std::function<std::vector<float>()> first_losses;
  // Otherwise: what the last call computed.
  std::function<std::vector<std::vector<float>>()> outputs;
};

std::vector<std::string> names();
bool is_training(const std::string& name);
// Empty where the mode can run the workload, else the reason.
std::string why_not(const std::string& name, Mode mode);

// Throws ballast::Error for an unknown name or missing array.
Run make_run(const std::string& name, Mode mode, const Arrays& arrays);

// What compiling a training workload consists of, twice: the second time the process has all plans
// and programs.
struct Phase {
  std::string name;
  double seconds;
};
std::vector<Phase> compile_phases(const std::string& name, const Arrays& arrays);

// Reads every .npy file of a folder.
Arrays load_arrays(const std::string& folder);

// The peers' two checksums: a weighted mean of magnitudes, and a signed one, added up over arrays.
std::pair<double, double> checksums(const std::vector<std::vector<float>>& arrays);

}  // namespace workloads
