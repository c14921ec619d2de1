// What the programs of the seeds share: their options, how they end, and the values that their
// tests read.
#pragma once

#include "frontend/tensor/tensor.h"

#include <CLI/CLI.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace examples {

class Example {
 public:
  int64_t steps() const { return steps_; }  // of the comparison; at least 1
  bool prints_table() const { return has_table_; }

  // Keeps values for --losses FILE, which is {"name": [values...], ...} in the order of the calls.
  void record(std::string name, std::vector<float> values);
  void record(std::string name, const ballast::Tensor& values);

 private:
  friend int run_example(int, char**, const std::string&, const std::function<void(Example&)>&,
                         const std::function<void(CLI::App&)>&);
  void add_options(CLI::App& app);
  void write_losses() const;

  int64_t steps_ = 100;
  bool has_table_ = true;
  std::string losses_file_;
  std::vector<std::pair<std::string, std::vector<float>>> records_;
};

// The whole of main: reads the options, runs the body and gives the exit status; an exception is
// printed and gives 1. `add_options` adds a program's own.
//   --steps N         steps of the comparison (100)
//   --table, --no-table   with or without the time table; without, nothing is repeated
//   --losses FILE     writes what was recorded as JSON
//   --level O0|O1     how jit and sink optimize (O1)
int run_example(int argc, char** argv, const std::string& about,
                const std::function<void(Example&)>& body,
                const std::function<void(CLI::App&)>& add_options = {});

// How long the work takes, until the device is done.
double seconds_of(const std::function<void()>& work);

}  // namespace examples
