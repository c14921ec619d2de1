// plan_matmul on named shapes: GFLOP/s of the fastest batch, and the share of the FMA peak that
// this process measured just before. The mean time that Google Benchmark prints includes whatever
// else the machine was doing.
#include "bench/kernels/plan_timer.h"
#include "bench/roofline.h"

#include <string>
#include <vector>

namespace ballast::bench {
namespace {

using kernels::MatmulConfig;

MatmulConfig batch_of(int64_t extent, MatmulConfig c) {
  c.batch = {{extent, c.m * c.k, c.k * c.n, c.m * c.n}};
  return c;
}

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
    {"gemm_2048", {2048, 2048, 2048}},
    {"gemm_bias_relu_1024", {1024, 1024, 1024, false, false, true, "relu"}},
    {"gemm_bias_gelu_1024", {1024, 1024, 1024, false, false, true, "gelu_tanh"}},
    {"dense1024_forward", {32, 1024, 1024, false, true, true, "relu"}},
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
    {"vit_qkv", {392, 768, 256, false, true, true}},
    {"vit_392x768x256", {392, 768, 256}},
    {"vit_392x256x256", {392, 256, 256}},
    {"vit_mlp_gelu", {1576, 1024, 256, false, true, true, "gelu_tanh"}},
    {"vit_scores", batch_of(16, {196, 196, 32, false, true})},
    {"vit_weighted", batch_of(16, {196, 32, 196})},
    {"batched_odd", batch_of(7, {61, 67, 53})},
    {"matvec_1024", {1024, 1, 1024}},
    {"vecmat_1024", {1, 1024, 1024}},
    {"vecmat_1024_tb", {1, 1024, 1024, false, true}},
    {"linreg_forward", {32, 1, 10, false, true, true}},
};

void run_shape(benchmark::State& state, const MatmulConfig& c) {
  const auto f32 = [](int64_t count) { return kernels::TensorType{kernels::DType::kF32, {count}}; };
  const int64_t count = c.batch.empty() ? 1 : c.batch[0].extent;
  std::vector<kernels::TensorType> operands = {f32(count * c.m * c.k), f32(count * c.k * c.n)};
  if (c.has_bias) operands.push_back(f32(c.n));
  if (c.activation == "relu_grad") operands.push_back(f32(c.m * c.n));
  operands.push_back(f32(count * c.m * c.n));
  PlanTimer timer(kernels::plan_matmul(PlanTimer::device_class(), c), operands);
  const double peak = fma_peak_gflops(static_cast<int>(PlanTimer::device()->info().compute_units));
  const double gflops = 2e-9 * static_cast<double>(count * c.m * c.n * c.k) / timer.run(state);
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
