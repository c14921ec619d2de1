// plan_matmul on named shapes: GFLOP/s of the fastest batch, and the share of the FMA peak that
// this process measured just before. The mean time that Google Benchmark prints includes whatever
// else the machine was doing.
#include "bench/roofline.h"
#include "device/stream.h"
#include "kernels/kernels.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <string>
#include <vector>

namespace ballast::bench {
namespace {

using kernels::MatmulConfig;

struct Shape {
  const char* name;
  MatmulConfig config;
};

// m, n, k, transpose_a, transpose_b, has_bias, activation. "dense" is a layer of 784 -> 512 -> 512
// -> 10 at batch 64 with weights [out, in]: forward, dx = dy w, dw = dy' x.
const Shape kShapes[] = {
    {"gemm_1024", {1024, 1024, 1024}},
    {"gemm_1024_ta", {1024, 1024, 1024, true, false}},
    {"gemm_1024_tb", {1024, 1024, 1024, false, true}},
    {"gemm_1024_ta_tb", {1024, 1024, 1024, true, true}},
    {"gemm_bias_relu_1024", {1024, 1024, 1024, false, false, true, "relu"}},
    {"gemm_1009", {1009, 1009, 1009}},
    {"dense1_forward", {64, 512, 784, false, true, true, "relu"}},
    {"dense2_forward", {64, 512, 512, false, true, true, "relu"}},
    {"dense3_forward", {64, 10, 512, false, true, true}},
    {"dense1_dx", {64, 784, 512}},
    {"dense2_dx", {64, 512, 512, false, false, false, "relu_grad"}},
    {"dense3_dx", {64, 512, 10, false, false, false, "relu_grad"}},
    {"dense1_dw", {512, 784, 64, true, false}},
    {"dense2_dw", {512, 512, 64, true, false}},
    {"dense3_dw", {10, 512, 64, true, false}},
    {"matvec_1024", {1024, 1, 1024}},
    {"vecmat_1024", {1, 1024, 1024}},
    {"vecmat_1024_tb", {1, 1024, 1024, false, true}},
    {"linreg_forward", {32, 1, 10, false, true, true}},
};

// The buffers of a plan's slots, filled with ordinary numbers.
std::vector<device::BufferPtr> make_buffers(const device::DevicePtr& device, const MatmulConfig& c,
                                            const kernels::Plan& plan) {
  std::vector<int64_t> counts = {c.m * c.k, c.k * c.n};
  if (c.has_bias) counts.push_back(c.n);
  if (c.activation == "relu_grad") counts.push_back(c.m * c.n);
  counts.push_back(c.m * c.n);
  if (plan.workspace_bytes > 0) counts.push_back(plan.workspace_bytes / sizeof(float));
  std::vector<device::BufferPtr> buffers;
  for (int64_t count : counts) {
    std::vector<float> values(count);
    for (int64_t i = 0; i < count; ++i) values[i] = static_cast<float>(i % 17) / 16 - 0.5f;
    buffers.push_back(device::Buffer::create(device, count * sizeof(float)));
    device->default_stream().write(*buffers.back(), 0, values.data(), count * sizeof(float));
  }
  return buffers;
}

void run_shape(benchmark::State& state, const MatmulConfig& config) {
  using Clock = std::chrono::steady_clock;
  const device::DevicePtr device = device::Device::open("", {});
  const kernels::Plan plan = kernels::plan_matmul(device->info().device_class, config);
  const std::vector<device::BufferPtr> buffers = make_buffers(device, config, plan);
  std::vector<device::Buffer*> slots;
  for (const device::BufferPtr& buffer : buffers) slots.push_back(buffer.get());
  device::Stream& stream = device->default_stream();
  const auto run_batch = [&](int batch) {
    const Clock::time_point start = Clock::now();
    for (int i = 0; i < batch; ++i) {
      for (const device::Launch& launch : plan.launches) {
        stream.submit(launch, slots.data(), slots.size());
      }
    }
    stream.sync();
    return std::chrono::duration<double>(Clock::now() - start).count() / batch;
  };
  run_batch(1);  // builds the program
  const double peak = fma_peak_gflops(static_cast<int>(device->info().compute_units));
  const int batch = std::clamp(static_cast<int>(2e-3 / run_batch(4)), 1, 500);
  double best = std::numeric_limits<double>::infinity();
  for (auto _ : state) {
    const double seconds = run_batch(batch);
    state.SetIterationTime(seconds);
    best = std::min(best, seconds);
  }
  const double gflops = 2e-9 * config.m * config.n * config.k / best;
  state.counters["best_us"] = best * 1e6;
  state.counters["gflops"] = gflops;
  state.counters["percent_of_peak"] = 100 * gflops / peak;
}

}  // namespace
}  // namespace ballast::bench

int main(int argc, char** argv) {
  using namespace ballast::bench;
  for (const Shape& shape : kShapes) {
    benchmark::RegisterBenchmark(shape.name, [&shape](benchmark::State& state) {
      run_shape(state, shape.config);
    })->UseManualTime();
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  const int threads = available_threads();
  benchmark::AddCustomContext("fma_peak_gflops", std::to_string(fma_peak_gflops(threads)));
  benchmark::AddCustomContext("copy_gb_per_s", std::to_string(copy_bandwidth_gbs(threads)));
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
