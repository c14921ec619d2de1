// Times a kernel plan on the current device ($BALLAST_DEVICE): buffers of ordinary numbers, batches
// of launches that fill 2 ms, the fastest batch; by the wall and by the processor time of all
// threads, which says more while other programs run.
#pragma once

#include "device/stream.h"
#include "kernels/kernels.h"

#include <benchmark/benchmark.h>

#include <vector>

namespace ballast::bench {

class PlanTimer {
 public:
  // `operands`: the plan's inputs and outputs in slot order; f32 are random in [-0.5, 0.5],
  // integers are 0. Runs the plan once, which builds its programs.
  PlanTimer(kernels::Plan plan, const std::vector<kernels::TensorType>& operands);

  static const device::DevicePtr& device();
  static kernels::DeviceClass device_class() { return device()->info().device_class; }

  // Runs under Google Benchmark's manual time; returns the seconds of one run in the fastest batch.
  double run(benchmark::State& state);

 private:
  double run_batch(int batch);

  kernels::Plan plan_;
  std::vector<device::BufferPtr> buffers_;
  std::vector<device::Buffer*> slots_;
};

}  // namespace ballast::bench
