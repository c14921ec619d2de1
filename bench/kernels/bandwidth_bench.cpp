// The kernels that memory limits, on named shapes: GB/s of what they must read and write, and the
// share of the copy bandwidth that this process measured just before. Operands of a few MiB live in
// a cache that is faster than memory, so the share can exceed 100.
#include "bench/kernels/plan_timer.h"
#include "bench/roofline.h"

#include <algorithm>
#include <functional>
#include <string>

namespace ballast::bench {
namespace {

using kernels::DeviceClass;
using kernels::DType;
using kernels::Plan;
using kernels::Shape;
using kernels::TensorType;
using kernels::to_string;

struct Case {
  std::string name;
  std::function<Plan(DeviceClass)> plan;
  std::vector<TensorType> operands;  // inputs, then outputs
};

TensorType f32(Shape shape) { return {DType::kF32, std::move(shape)}; }

Case pointwise(const std::string& op, std::vector<TensorType> inputs, const TensorType& output) {
  auto plan = [=](DeviceClass c) { return kernels::plan_pointwise(c, op, inputs, output); };
  std::string name = op + to_string(output.shape);
  inputs.push_back(output);
  return {name, plan, inputs};
}

Case reduction(const std::string& kind, const Shape& shape, std::vector<int64_t> axes) {
  TensorType output = f32({});
  for (int64_t d = 0; d < static_cast<int64_t>(shape.size()); ++d) {
    if (std::find(axes.begin(), axes.end(), d) == axes.end()) output.shape.push_back(shape[d]);
  }
  auto plan = [=](DeviceClass c) {
    return kernels::plan_reduce(c, kind, f32(shape), axes, output);
  };
  return {kind + to_string(shape) + " over " + to_string(axes), plan, {f32(shape), output}};
}

std::vector<Case> cases() {
  constexpr int64_t kSide = 1024, kParameters = 512 * 784, kBatch = 64, kClasses = 10;
  const TensorType matrix = f32({kSide, kSide}), row = f32({kSide}), scalar = f32({});
  const TensorType parameter = f32({kParameters}), logits = f32({kBatch, kClasses}),
                   losses = f32({kBatch}), labels{DType::kI32, {kBatch}};
  std::vector<Case> list;
  for (const char* op : {"relu", "exp", "tanh"}) list.push_back(pointwise(op, {matrix}, matrix));
  list.push_back(pointwise("add", {matrix, matrix}, matrix));
  list.push_back(pointwise("add", {matrix, row}, matrix));
  list.push_back(pointwise("add", {f32({1021, 1021}), f32({1021, 1021})}, f32({1021, 1021})));
  list.push_back(reduction("sum", {kSide, kSide}, {0}));
  list.push_back(reduction("sum", {kSide, kSide}, {1}));
  list.push_back(reduction("sum", {kSide, kSide}, {0, 1}));
  list.push_back({"transpose" + to_string(matrix.shape),
                  [](DeviceClass c) {
                    return kernels::plan_copy(c, DType::kF32, {kSide, kSide}, {1, kSide});
                  },
                  {matrix, matrix}});
  list.push_back({"sgd" + to_string(parameter.shape),
                  [](DeviceClass c) { return kernels::plan_sgd(c, kParameters); },
                  {parameter, parameter, scalar, parameter}});
  list.push_back({"momentum" + to_string(parameter.shape),
                  [](DeviceClass c) { return kernels::plan_momentum(c, kParameters, false); },
                  {parameter, parameter, parameter, scalar, scalar, parameter, parameter}});
  list.push_back(
      {"softmax_cross_entropy" + to_string(logits.shape),
       [](DeviceClass c) { return kernels::plan_softmax_cross_entropy(c, kBatch, kClasses); },
       {logits, labels, losses}});
  list.push_back(
      {"softmax_cross_entropy_grad" + to_string(logits.shape),
       [](DeviceClass c) { return kernels::plan_softmax_cross_entropy_grad(c, kBatch, kClasses); },
       {losses, logits, labels, logits}});
  return list;
}

void run_case(benchmark::State& state, const Case& c) {
  PlanTimer timer(c.plan(PlanTimer::device_class()), c.operands);
  const double peak =
      copy_bandwidth_gbs(static_cast<int>(PlanTimer::device()->info().compute_units));
  double bytes = 0;
  for (const TensorType& type : c.operands) bytes += static_cast<double>(type.bytes());
  const double rate = 1e-9 * bytes / timer.run(state);
  state.counters["gb_per_s"] = rate;
  state.counters["percent_of_copy"] = 100 * rate / peak;
}

}  // namespace
}  // namespace ballast::bench

int main(int argc, char** argv) {
  using namespace ballast::bench;
  for (const Case& c : cases()) {
    benchmark::RegisterBenchmark(c.name.c_str(), [c](benchmark::State& state) {
      run_case(state, c);
    })->UseManualTime();
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
