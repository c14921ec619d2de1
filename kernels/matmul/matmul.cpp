// What a product may be, and which choice (matmul_choice.h) it takes.
#include "kernels/matmul/matmul.h"

#include "kernels/matmul/matmul_activations.h"
#include "kernels/matmul/matmul_choice.h"
#include "kernels/matmul/matmul_split.h"
#include "kernels/plan/plan_builder.h"
#include "kernels/plan/tune.h"
#include "kernels/pointwise/fuse.h"
#include "kernels/recipe/jit_kernel.h"

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

namespace ballast::kernels {
namespace {

using device::Code;
using device::fail;

void check(const MatmulConfig& config) {
  check_epilogue(config);
  if (config.m < 0 || config.n < 0 || config.k < 0) {
    fail(Code::kInvalidArgument, "[matmul] sizes are m = {}, n = {}, k = {}, expected none below 0",
         config.m, config.n, config.k);
  }
}

bool is_empty(const MatmulConfig& config) {
  return config.m == 0 || config.n == 0 ||
         std::any_of(config.batch.begin(), config.batch.end(),
                     [](const MatmulBatch& b) { return b.extent == 0; });
}

// What the plan's inputs and output take.
std::vector<uint64_t> slot_bytes(const MatmulConfig& c, const MatmulSlots& slots) {
  const auto matrix = [&](const std::optional<MatmulStrides>& given, int64_t rows, int64_t columns,
                          int64_t MatmulBatch::*stride) {
    const MatmulStrides strides = given.value_or(MatmulStrides{columns, 1});
    int64_t last = (rows - 1) * strides.row + (columns - 1) * strides.column;
    for (const MatmulBatch& batch : c.batch) last += (batch.extent - 1) * (batch.*stride);
    return static_cast<uint64_t>(std::max<int64_t>(last + 1, 0)) * size_of(c.dtype);
  };
  std::vector<uint64_t> bytes = {matrix(c.a_strides, c.m, c.k, &MatmulBatch::a),
                                 matrix(c.b_strides, c.k, c.n, &MatmulBatch::b)};
  for (const bool has : {c.has_scale, c.has_bias}) {
    if (has) bytes.push_back(c.n * sizeof(float));
  }
  const uint64_t result = matrix(c.c_strides, c.m, c.n, &MatmulBatch::c);
  bytes.resize(slots.output + 1, result);
  return bytes;
}

std::string problem_name(const MatmulConfig& c) {
  std::string name =
      fmt::format("matmul {} {}x{}x{} {}{} scale {} bias {} {} residual {}", name_of(c.dtype), c.m,
                  c.n, c.k, c.transpose_a ? "T" : "N", c.transpose_b ? "T" : "N", c.has_scale,
                  c.has_bias, c.activation, c.has_residual);
  for (const auto* strides : {&c.a_strides, &c.b_strides, &c.c_strides}) {
    if (*strides) name += fmt::format(" strides {} {}", (*strides)->row, (*strides)->column);
  }
  for (const MatmulBatch& b : c.batch) {
    name += fmt::format(" batch {} by {} {} {}", b.extent, b.a, b.b, b.c);
  }
  return name;
}

// The standard choice, or where tuning is on the fastest of those that look promising.
size_t tuned(DeviceClass device_class, const MatmulConfig& config,
             const std::vector<MatmulChoice>& choices) {
  const std::vector<size_t> numbers = promising_choices(choices);
  std::vector<std::function<Plan()>> plans;
  std::string name = problem_name(config);
  for (size_t number : numbers) {
    name += " | " + to_string(choices[number]);
    plans.push_back([&, number] { return plan_matmul_as(device_class, config, choices[number]); });
  }
  return numbers[tuned_choice(name, 0, plans, slot_bytes(config, MatmulSlots(config)))];
}

void check_chain(const MatmulConfig& config, const FusedPointwise& chain) {
  check_steps(chain, is_pointwise_step);
  const bool is_one_result = gives_last_step(chain) && chain.steps.back().type.dtype == DType::kF32;
  if (has_epilogue(config) || config.dtype != DType::kF32 || config.c_strides ||
      chain.inputs.empty() || !is_one_result || chain.inputs[0].dtype != DType::kF32) {
    fail(Code::kInvalidArgument, "[fused_matmul] this product takes no such chain: {}",
         text_of(chain));
  }
  const Shape& c = chain.inputs[0].shape;
  for (const TensorType& input : chain.inputs) {
    if (!is_fusable_beside_product(input.shape, c)) {
      fail(Code::kInvalidArgument, "[fused_matmul] an operand of shape {} beside a product of {}",
           to_string(input.shape), to_string(c));
    }
  }
}

// The product into the workspace, then the chain.
Plan plan_apart(DeviceClass device_class, const MatmulConfig& config, const Plan& plan_of_product,
                const FusedPointwise& chain) {
  const MatmulSlots slots(config, &chain);
  PlanBuilder builder(slots.output + 1);
  const uint32_t product = builder.add_region(chain.inputs[0].bytes());
  builder.append(plan_of_product, {slots.a, slots.b, product});
  std::vector<uint32_t> of_chain = {product};
  for (uint32_t slot = slots.of_chain; slot <= slots.output; ++slot) of_chain.push_back(slot);
  builder.append(plan_fused(device_class, chain), of_chain);
  return builder.finish();
}

MatmulChoice choose(DeviceClass device_class, const MatmulConfig& config) {
  const MatmulProblem problem = make_matmul_problem(config, MatmulSlots(config));
  const std::vector<MatmulChoice> choices = matmul_choices(device_class, problem);
  return choices[tuned(device_class, config, choices)];
}

Shape without_leading_ones(Shape shape) {
  while (!shape.empty() && shape[0] == 1) shape.erase(shape.begin());
  return shape;
}

}  // namespace

bool has_epilogue(const MatmulConfig& config) {
  return config.has_scale || config.has_bias || config.has_residual || config.activation != "none";
}

bool is_matmul_activation(const std::string& op) { return activation_number(op) > 0; }

void check_epilogue(const MatmulConfig& config) {
  if (activation_number(config.activation) < 0) {
    std::string names;
    for (const char* name : kActivations) names += std::string(name) + ", ";
    fail(Code::kInvalidArgument, "activation is \"{}\", expected one of {}relu_grad",
         config.activation, names);
  }
  if (config.activation == "relu_grad" && config.has_residual) {
    fail(Code::kInvalidArgument, "activation relu_grad takes no residual beside it");
  }
  if (config.dtype != DType::kF32 && has_epilogue(config)) {
    fail(Code::kUnimplemented, "has no kernel for {} with an epilogue", name_of(config.dtype));
  }
}

MatmulSlots::MatmulSlots(const MatmulConfig& config, const FusedPointwise* chain) {
  uint32_t next = 2;
  of_chain = next;
  if (chain != nullptr) next += static_cast<uint32_t>(chain->inputs.size()) - 1;
  if (config.has_scale) scale = next++;
  if (config.has_bias) bias = next++;
  if (config.has_residual || config.activation == "relu_grad") extra = next++;
  output = next;
}

bool takes_scale(DeviceClass device_class, const MatmulConfig& config) {
  const bool has_others = config.has_residual || config.activation == "relu_grad";
  const bool is_simple = config.activation == "none" || config.activation == "relu";
  if (!config.has_bias || has_others || !is_simple || config.dtype != DType::kF32) return false;
  return !matmul_choices(device_class, make_matmul_problem(config, MatmulSlots(config))).empty();
}

Plan plan_matmul(DeviceClass device_class, const MatmulConfig& config) {
  check(config);
  if (config.has_scale && !takes_scale(device_class, config)) {
    fail(Code::kUnimplemented, "[matmul] there is no kernel with a scale for {}",
         problem_name(config));
  }
  if (is_empty(config)) return {};
  const int64_t parts = split_parts(device_class, config);
  if (parts > 1) return plan_split_matmul(device_class, config, parts);
  return plan_matmul_as(device_class, config, choose(device_class, config));
}

bool is_fusable_beside_product(const Shape& operand, const Shape& c) {
  const Shape shape = without_leading_ones(operand);
  return shape.empty() || shape == Shape{c.back()} || shape == without_leading_ones(c);
}

Plan plan_fused_matmul(DeviceClass device_class, const MatmulConfig& config,
                       const FusedPointwise& chain) {
  check(config);
  check_chain(config, chain);
  if (is_empty(config)) return {};
  if (const int64_t parts = split_parts(device_class, config); parts > 1) {
    return plan_apart(device_class, config, plan_split_matmul(device_class, config, parts), chain);
  }
  const MatmulChoice choice = choose(device_class, config);
  if (!can_fuse(choice)) {
    return plan_apart(device_class, config, plan_matmul_as(device_class, config, choice), chain);
  }
  const std::string key = device_class == DeviceClass::kCpu ? "cpu " : "gpu ";
  return cached_jit_plan(
      key + problem_name(config) + " | " + to_string(choice) + typed_text_of(chain),
      [&] { return plan_matmul_as(device_class, config, choice, &chain); });
}

}  // namespace ballast::kernels
