// A rival's process, seen from the driver: started once, asked for one case after another. A rival
// that dies is reported and asked nothing more.
#pragma once

#include "bench/case.h"

#include <nlohmann/json_fwd.hpp>

#include <memory>
#include <string>
#include <vector>

namespace ballast::bench {

class Rival {
 public:
  // `command`: a program and its arguments. Throws std::runtime_error if it does not greet.
  explicit Rival(const std::vector<std::string>& command);
  ~Rival();
  Rival(const Rival&) = delete;

  const std::string& name() const { return name_; }
  const std::string& version() const { return version_; }

  // The names of the variants it has; empty (with a line on standard error where it failed, rather
  // than has nothing) if it takes no part.
  std::vector<std::string> prepare(const Case& c);
  // Seconds of `count` runs of a variant. This and check throw std::runtime_error where it fails.
  double run(size_t variant, int count);
  // One per output.
  std::vector<Checksum> check(size_t variant);
  // Of a processor, that its threads have used until now.
  double cpu_seconds() const;

 private:
  nlohmann::json ask(const nlohmann::json& request);
  nlohmann::json receive();

  std::string name_, version_;
  bool has_ended_ = false;
  int pid_ = -1;
  std::FILE* to_ = nullptr;
  std::FILE* from_ = nullptr;
};

// The same of any process; 0 of one that has ended.
double cpu_seconds(int pid);

// Starts every rival that was built or installed: the programs in `folder`, and scripts, which lie
// in $BALLAST_BENCH_RIVALS, among the sources or beside the programs. $BALLAST_BENCH_PYTHON is the
// Python that has JAX; `is_gpu`: no rivals but those that compute on one. Those that do not start
// are named on standard error.
std::vector<std::unique_ptr<Rival>> start_rivals(const std::string& folder, int threads,
                                                 bool is_gpu);

}  // namespace ballast::bench
