// Chains of pointwise steps as one kernel, compiled by Halide at run time for exact shapes.
#include "kernels/pointwise/fuse.h"

#include "kernels/pointwise/fuse_steps.h"
#include "kernels/pointwise/loops.h"
#include "kernels/pointwise/pointwise_recipe.h"
#include "kernels/recipe/jit_kernel.h"

namespace ballast::kernels {
namespace {

using device::Code;
using device::fail;
using Halide::Expr;
using Halide::Func;

// Everything that the kernel depends on: the key of the cache.
std::string describe(DeviceClass device_class, const FusedPointwise& fused,
                     const InputStrides& strides) {
  std::string text = device_class == DeviceClass::kCpu ? "cpu(" : "gpu(";
  for (size_t i = 0; i < fused.inputs.size(); ++i) {
    text += fmt::format("{}{};", name_of(fused.inputs[i].dtype), to_string(strides[i]));
  }
  return text + text_of(fused);
}

void check_outputs(const FusedPointwise& fused) {
  if (fused.outputs.empty()) fail(Code::kInvalidArgument, "[fused] no outputs");
  for (uint32_t output : fused.outputs) {
    if (output >= fused.steps.size() ||
        fused.steps[output].type.shape != fused.steps[fused.outputs[0]].type.shape) {
      fail(Code::kInvalidArgument, "[fused] output {} is no step of the common shape", output);
    }
  }
}

// After schedule_nest: of several outputs all of a vector, in registers, before any is stored.
void schedule_values(Outputs outputs, const Nest& nest, int64_t lanes) {
  if (outputs.values.outputs() == 1) return;
  outputs.values.compute_at(outputs.out, nest.lane).store_in(Halide::MemoryType::Register);
  outputs.values.bound_extent(nest.lane, static_cast<int>(lanes)).vectorize(nest.lane);
}

JitKernel build(DeviceClass device_class, const FusedPointwise& fused, const Loops& loops,
                const Chunks& chunks) {
  JitKernel kernel;
  const int dimensions = static_cast<int>(loops.extents.size());
  const Nest nest = make_nest(dimensions);
  std::vector<Halide::ImageParam> inputs;
  for (const TensorType& input : fused.inputs) {
    const std::vector<int64_t>& strides = loops.strides[inputs.size()];
    inputs.push_back(add_fixed_input(kernel, input.dtype, loops.extents, strides));
  }
  // A single identity moves its elements as they are.
  const bool moves = fused.steps.size() == 1 && moves_bits(fused.steps[0].op, 0);
  std::vector<Expr> results;
  if (moves) {
    results.push_back(inputs[fused.steps[0].args[0].index](nest.vars()));
  } else {
    const std::vector<Func> steps = make_steps(fused, nest.vars(), [&](uint32_t input) {
      return loaded(inputs[input](nest.vars()), fused.inputs[input].dtype);
    });
    for (uint32_t output : fused.outputs) {
      results.push_back(stored(steps[output](nest.vars()), fused.steps[output].type.dtype));
    }
  }
  const Outputs made = make_outputs(nest, results);
  kernel.func = made.out;
  auto outputs = kernel.func.output_buffers();
  fix_extents(outputs[0], loops.extents);  // the others' follow
  for (size_t i = 0; i < outputs.size(); ++i) {
    fix_strides(outputs[i], loops.strides[fused.inputs.size() + i]);
  }
  schedule_nest(kernel.func, nest, chunks.x, chunks.y, device_class == DeviceClass::kGpu);
  schedule_values(made, nest, loops.extents[0]);
  if (loops.extents[0] == kLanes) kernel.func.vectorize(nest.lane, kLanes);
  return kernel;
}

Plan make_plan(DeviceClass device_class, const FusedPointwise& fused, InputStrides strides) {
  const Shape& shape = fused.steps[fused.outputs[0]].type.shape;
  if (elements_of(shape) == 0) return {};
  strides.resize(strides.size() + fused.outputs.size(), broadcast_strides("fused", shape, shape));
  const Loops loops = make_loops(device_class, shape, strides);
  Recorder recorder;
  record_elementwise(recorder, device_class, loops, [&](const Loops& part, const Chunks& chunks) {
    std::vector<HostArg> args;
    uint32_t slot = 0;
    for (const TensorType& input : fused.inputs) {
      args.push_back(part.operand(slot, slot, input.dtype));
      ++slot;
    }
    for (uint32_t output : fused.outputs) {
      args.push_back(part.operand(slot, slot, fused.steps[output].type.dtype));
      ++slot;
    }
    record_jit(
        recorder, [&] { return build(device_class, fused, part, chunks); }, label_of(fused), args);
  });
  return recorder.finish();
}

}  // namespace

bool is_pointwise_step(const FusedStep& step, const std::vector<DType>& args) {
  const PointwiseOp* op = find_pointwise(step.op);
  return op != nullptr && accepts(*op, args, step.type.dtype);
}

void check_steps(const FusedPointwise& fused,
                 bool (*is_valid)(const FusedStep& step, const std::vector<DType>& args)) {
  for (size_t i = 0; i < fused.steps.size(); ++i) {
    const FusedStep& step = fused.steps[i];
    std::vector<DType> types;
    for (const FusedStep::Ref& ref : step.args) {
      if (ref.index >= (ref.is_input ? fused.inputs.size() : i)) {
        fail(Code::kInvalidArgument, "[fused] step {} ({}) refers to {} {}, which is not before it",
             i, step.op, ref.is_input ? "input" : "step", ref.index);
      }
      types.push_back(ref.is_input ? fused.inputs[ref.index].dtype
                                   : fused.steps[ref.index].type.dtype);
    }
    if (!is_valid(step, types)) {
      fail(Code::kInvalidArgument, "[fused] step {}: {} does not take these types", i, step.op);
    }
  }
}

bool gives_last_step(const FusedPointwise& fused) {
  return !fused.steps.empty() &&
         fused.outputs == std::vector<uint32_t>{static_cast<uint32_t>(fused.steps.size()) - 1};
}

std::string text_of(const FusedPointwise& fused) {
  std::string text;
  for (const FusedStep& step : fused.steps) {
    text += step.op + "(";
    for (const FusedStep::Ref& ref : step.args) {
      text += fmt::format("{}{},", ref.is_input ? "in" : "step", ref.index);
    }
    text += ")" + to_string(step.type) + ";";
  }
  for (uint32_t output : fused.outputs) text += fmt::format("out{};", output);
  return text;
}

std::string typed_text_of(const FusedPointwise& fused) {
  std::string text = "(";
  for (const TensorType& input : fused.inputs) text += to_string(input) + ";";
  return text + text_of(fused);
}

std::string label_of(const FusedPointwise& fused) {
  std::string label = "fused";
  for (const FusedStep& step : fused.steps) label += "_" + step.op;
  constexpr size_t kMaxLength = 80;
  if (label.size() > kMaxLength) label = label.substr(0, kMaxLength) + "...";
  return label;
}

Plan plan_fused(DeviceClass device_class, const FusedPointwise& fused) {
  check_steps(fused, is_pointwise_step);
  check_outputs(fused);
  const Shape& shape = fused.steps[fused.outputs[0]].type.shape;
  InputStrides strides;
  for (const TensorType& input : fused.inputs) {
    strides.push_back(broadcast_strides("fused", input.shape, shape));
  }
  return plan_fused_strided(device_class, fused, strides);
}

Plan plan_fused_strided(DeviceClass device_class, const FusedPointwise& fused,
                        const InputStrides& strides) {
  return cached_jit_plan(describe(device_class, fused, strides),
                         [&] { return make_plan(device_class, fused, strides); });
}

}  // namespace ballast::kernels
