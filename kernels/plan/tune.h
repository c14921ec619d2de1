// The autotuner: picks the fastest of several plans for one problem by the clock, once per device
// and problem, and remembers it in memory and on disk beside the compiled programs.
//
// Off unless BALLAST_TUNE=1. Only plans that give the same bits may be candidates: what is chosen
// depends on the machine and on chance, results must not. Threads may tune at the same time.
#pragma once

#include "device/device.h"
#include "kernels/plan/plan.h"

#include <functional>
#include <string>
#include <vector>

namespace ballast::kernels {

// While it lives, plans that this thread makes may be chosen by running candidates on `device`.
class TuningScope {
 public:
  explicit TuningScope(device::DevicePtr device);
  ~TuningScope();
  TuningScope(const TuningScope&) = delete;

 private:
  device::DevicePtr before_;
};

// The number of the candidate to use: `standard` where tuning is off or no scope is open; else what
// was measured for `problem`, which names the family, shapes, strides, dtypes and candidates.
// `slot_bytes`: the sizes of the candidates' inputs and outputs.
size_t tuned_choice(const std::string& problem, size_t standard,
                    const std::vector<std::function<Plan()>>& candidates,
                    const std::vector<uint64_t>& slot_bytes);

// What decides: the candidate with the fastest round, or `standard` unless that is faster by more
// than the noise. `seconds` runs a candidate once more and says how long a run took.
size_t fastest_candidate(size_t count, size_t standard,
                         const std::function<double(size_t candidate)>& seconds);

}  // namespace ballast::kernels
