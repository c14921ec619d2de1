// plan_matmul on named shapes: GFLOP/s of the fastest batch, and the share of the FMA peak that
// this process measured just before. The mean time that Google Benchmark prints includes whatever
// else the machine was doing.
//
// --choices: also each way to compute a shape that is estimated to take less than three times the
// best one, beside the estimate. For work on estimates; on a machine that does other things ask for
// --benchmark_enable_random_interleaving=true and some --benchmark_repetitions.
#include "bench/kernels/plan_timer.h"
#include "bench/roofline.h"
#include "kernels/matmul/matmul_choice.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace ballast::bench {
namespace {

using kernels::MatmulChoice;
using kernels::MatmulConfig;

MatmulConfig batch_of(int64_t extent, MatmulConfig c) {
  c.batch = {{extent, c.m * c.k, c.k * c.n, c.m * c.n}};
  return c;
}

// 1x1 convolutions of so many images, which share the weights A: y = w x, and with transposed
// weights towards the input.
MatmulConfig images_of(int64_t extent, const MatmulConfig& c) {
  MatmulConfig images = batch_of(extent, c);
  images.batch[0].a = 0;
  return images;
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
    {"skinny_64x512x10", {64, 10, 512}},
    {"skinny_4096x512x10", {4096, 10, 512}},
    {"skinny_4096x10x512", {4096, 512, 10}},
    {"skinny_512x4096x10_ta", {512, 10, 4096, true, false}},
    {"skinny_10x4096x512_ta", {10, 512, 4096, true, false}},
    {"conv_1x1_256_256", images_of(8, {256, 196, 256})},
    {"conv_1x1_64_256", images_of(8, {256, 3136, 64})},
    {"conv_1x1_64_256_dx", images_of(8, {64, 3136, 256, true, false})},
    {"conv_1x1_2048_512", {512, 392, 2048}},
};

using Operands = std::vector<kernels::TensorType>;

int64_t products(const MatmulConfig& c) { return c.batch.empty() ? 1 : c.batch[0].extent; }

Operands operands_of(const MatmulConfig& c) {
  const auto f32 = [](int64_t count) { return kernels::TensorType{kernels::DType::kF32, {count}}; };
  const int64_t count = products(c);
  Operands operands = {f32(count * c.m * c.k), f32(count * c.k * c.n)};
  if (c.has_bias) operands.push_back(f32(c.n));
  if (c.activation == "relu_grad") operands.push_back(f32(c.m * c.n));
  operands.push_back(f32(count * c.m * c.n));
  return operands;
}

void run_plan(benchmark::State& state, const MatmulConfig& c, const kernels::Plan& plan) {
  PlanTimer timer(plan, operands_of(c));
  const double peak = fma_peak_gflops(static_cast<int>(PlanTimer::device()->info().compute_units));
  const double multiply_adds = static_cast<double>(products(c) * c.m * c.n * c.k);
  const double gflops = 2e-9 * multiply_adds / timer.run(state);
  state.counters["gflops"] = gflops;
  state.counters["percent_of_peak"] = 100 * gflops / peak;
}

void register_shape(const Shape& shape) {
  benchmark::RegisterBenchmark(shape.name, [&shape](benchmark::State& state) {
    run_plan(state, shape.config, kernels::plan_matmul(PlanTimer::device_class(), shape.config));
  })->UseManualTime();
}

void register_choices(const Shape& shape) {
  const kernels::MatmulSlots slots(shape.config);
  const std::vector<MatmulChoice> choices = kernels::matmul_choices(
      PlanTimer::device_class(), kernels::make_matmul_problem(shape.config, slots));
  for (size_t number : kernels::promising_choices(choices)) {
    const MatmulChoice c = choices[number];
    const std::string name = std::string(shape.name) + "/" + to_string(c);
    benchmark::RegisterBenchmark(name.c_str(), [&shape, c](benchmark::State& state) {
      run_plan(state, shape.config,
               kernels::plan_matmul_as(PlanTimer::device_class(), shape.config, c));
      state.counters["estimated_us"] = c.nanoseconds / 1000;
    })->UseManualTime();
  }
}

}  // namespace
}  // namespace ballast::bench

int main(int argc, char** argv) {
  using namespace ballast::bench;
  char** const end = std::remove_if(
      argv, argv + argc, [](const char* arg) { return std::string_view(arg) == "--choices"; });
  const bool has_choices = end != argv + argc;
  argc = static_cast<int>(end - argv);
  for (const Shape& shape : kShapes) {
    register_shape(shape);
    if (has_choices) register_choices(shape);
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  const int threads = available_threads();
  benchmark::AddCustomContext("fma_peak_gflops", std::to_string(fma_peak_gflops(threads)));
  benchmark::AddCustomContext("copy_gb_per_s", std::to_string(copy_bandwidth_gbs(threads)));
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
