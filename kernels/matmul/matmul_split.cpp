#include "kernels/matmul/matmul_split.h"

#include "kernels/matmul/matmul_choice.h"
#include "kernels/plan/blocks.h"
#include "kernels/reduce/parts.h"

namespace ballast::kernels {
namespace {

double best_block_ns(const BlockedProduct& product) {
  return block_ns(product, choose_block(product));
}

// Of the parts and their sum, which is a launch and passes over the parts.
double split_ns(const MatmulConfig& c, int64_t parts) {
  constexpr double kSumNs = 5000, kElementNs = 1 / 500.0;
  const double elements = static_cast<double>(c.m) * static_cast<double>(c.n * parts);
  return best_block_ns({c.m, c.n, parts, c.k / parts}) + kSumNs + elements * kElementNs;
}

}  // namespace

int64_t split_parts(DeviceClass device_class, const MatmulConfig& c) {
  constexpr int64_t kMostParts = 64, kLeastSteps = 64;
  constexpr double kLeastGain = 2;  // the estimates are rough
  if (device_class != DeviceClass::kGpu || c.dtype != DType::kF32 || has_epilogue(c) ||
      !c.batch.empty() || c.c_strides) {
    return 1;
  }
  int64_t best = 1;
  double least = best_block_ns({c.m, c.n, 1, c.k}) / kLeastGain;
  for (int64_t parts = 2; parts <= kMostParts && parts * kLeastSteps <= c.k; ++parts) {
    if (c.k % parts != 0) continue;
    const double ns = split_ns(c, parts);
    if (ns >= least) continue;
    least = ns;
    best = parts;
  }
  return best;
}

Plan plan_split_matmul(DeviceClass device_class, const MatmulConfig& config, int64_t parts) {
  const MatmulProblem whole = make_matmul_problem(config, MatmulSlots(config));
  const int64_t steps = config.k / parts, results = config.m * config.n;
  MatmulConfig part{config.m, config.n, steps};
  part.a_strides = {whole.a.stride, whole.a.k_stride};
  part.b_strides = {whole.b.k_stride, whole.b.stride};
  part.batch = {{parts, steps * whole.a.k_stride, steps * whole.b.k_stride, results}};
  return plan_sum_of_parts(device_class, plan_matmul(device_class, part), parts, results);
}

}  // namespace ballast::kernels
