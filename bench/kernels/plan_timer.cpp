#include "bench/kernels/plan_timer.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <limits>

namespace ballast::bench {

PlanTimer::PlanTimer(kernels::Plan plan, const std::vector<kernels::TensorType>& operands)
    : plan_(std::move(plan)) {
  for (const kernels::TensorType& type : operands) {
    std::vector<uint32_t> zeros((type.bytes() + 3) / 4);
    std::vector<float> numbers(zeros.size());
    uint32_t state = 1;
    for (float& number : numbers) {
      state = state * 1664525u + 1013904223u;
      number = static_cast<float>(state >> 8) / (1 << 24) - 0.5f;
    }
    const bool is_float = type.dtype == kernels::DType::kF32;
    buffers_.push_back(device::Buffer::create(device(), type.bytes()));
    device()->default_stream().write(*buffers_.back(), 0,
                                     is_float ? static_cast<void*>(numbers.data()) : zeros.data(),
                                     type.bytes());
  }
  if (plan_.workspace_bytes > 0) {
    buffers_.push_back(device::Buffer::create(device(), plan_.workspace_bytes));
    const device::BufferPtr workspace = buffers_.back();
    for (const kernels::Region& region : plan_.regions) {
      buffers_.push_back(device::Buffer::view(workspace, region.offset, region.bytes));
    }
  }
  for (const device::BufferPtr& buffer : buffers_) slots_.push_back(buffer.get());
  run_batch(1);
}

const device::DevicePtr& PlanTimer::device() {
  static const device::DevicePtr device = device::Device::open("", {});
  return device;
}

double PlanTimer::run_batch(int batch) {
  using Clock = std::chrono::steady_clock;
  device::Stream& stream = device()->default_stream();
  const Clock::time_point start = Clock::now();
  for (int i = 0; i < batch; ++i) {
    for (const device::Launch& launch : plan_.launches) {
      stream.submit(launch, slots_.data(), slots_.size());
    }
  }
  stream.sync();
  return std::chrono::duration<double>(Clock::now() - start).count() / batch;
}

double PlanTimer::run(benchmark::State& state) {
  std::string labels;
  for (const device::Launch& launch : plan_.launches) {
    labels += (labels.empty() ? "" : ", ") + launch.label;
  }
  state.SetLabel(labels);
  const int batch = std::clamp(static_cast<int>(2e-3 / run_batch(4)), 1, 500);
  double best = std::numeric_limits<double>::infinity(), best_cpu = best;
  for (auto _ : state) {
    const std::clock_t before = std::clock();
    const double seconds = run_batch(batch);
    best_cpu = std::min(best_cpu, static_cast<double>(std::clock() - before) / batch);
    state.SetIterationTime(seconds);
    best = std::min(best, seconds);
  }
  state.counters["best_cpu_us"] = best_cpu * (1e6 / CLOCKS_PER_SEC);
  state.counters["best_us"] = best * 1e6;
  return best;
}

}  // namespace ballast::bench
