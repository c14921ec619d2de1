// Chains of pointwise steps as one kernel, compiled by Halide at run time for exact shapes.
#include "kernels/pointwise/fuse.h"

#include "kernels/halide_runtime.h"
#include "kernels/pointwise/loops.h"
#include "kernels/pointwise/pointwise_recipe.h"

#include <HalideRuntimeOpenCL.h>

#include <map>
#include <mutex>

extern "C" int halide_copy_to_device(void*, halide_buffer_t*, const halide_device_interface_t*);

namespace ballast::kernels {
namespace {

using device::Code;
using device::fail;
using Halide::Expr;
using Halide::Func;

// Everything that the kernel depends on, as text: the key of the cache.
std::string describe(DeviceClass device_class, const FusedPointwise& fused,
                     const InputStrides& strides) {
  std::string text = device_class == DeviceClass::kCpu ? "cpu(" : "gpu(";
  for (size_t i = 0; i < fused.inputs.size(); ++i) {
    text += fmt::format("{}{};", name_of(fused.inputs[i].dtype), to_string(strides[i]));
  }
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

std::string label_of(const FusedPointwise& fused) {
  std::string label = "fused";
  for (const FusedStep& step : fused.steps) label += "_" + step.op;
  constexpr size_t kMaxLength = 80;
  if (label.size() > kMaxLength) label = label.substr(0, kMaxLength) + "...";
  return label;
}

void check(const FusedPointwise& fused) {
  if (fused.outputs.empty()) fail(Code::kInvalidArgument, "[fused] no outputs");
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
    const PointwiseOp* op = find_pointwise(step.op);
    if (op == nullptr || !accepts(*op, types, step.type.dtype)) {
      fail(Code::kInvalidArgument, "[fused] step {}: {} does not take these types", i, step.op);
    }
  }
  for (uint32_t output : fused.outputs) {
    if (output >= fused.steps.size() ||
        fused.steps[output].type.shape != fused.steps[fused.outputs[0]].type.shape) {
      fail(Code::kInvalidArgument, "[fused] output {} is no step of the common shape", output);
    }
  }
}

template <class Param>
void fix_strides(Param param, const std::vector<int64_t>& strides) {
  for (size_t d = 0; d < strides.size(); ++d) {
    param.dim(d).set_stride(static_cast<int>(strides[d]));
  }
}

template <class Param>
void fix_extents(Param param, const std::vector<int64_t>& extents) {
  for (size_t d = 0; d < extents.size(); ++d) {
    param.dim(d).set_bounds(0, static_cast<int>(extents[d]));
  }
}

struct FusedPipeline {
  Func func;
  std::vector<Halide::Argument> arguments;
};

FusedPipeline build(DeviceClass device_class, const FusedPointwise& fused, const Loops& loops) {
  FusedPipeline pipeline;
  const int dimensions = static_cast<int>(loops.extents.size());
  const Nest nest = make_nest(dimensions);
  std::vector<Halide::ImageParam> inputs;
  for (const TensorType& input : fused.inputs) {
    inputs.emplace_back(storage_type(input.dtype), dimensions);
    fix_extents(inputs.back(), loops.extents);
    fix_strides(inputs.back(), loops.strides[inputs.size() - 1]);
    pipeline.arguments.push_back(inputs.back());
  }
  // A single identity moves its elements as they are.
  const bool moves = fused.steps.size() == 1 && moves_bits(fused.steps[0].op, 0);
  // A step is a Func of its own, inlined later: expressions that use a step twice stay small.
  std::vector<Func> steps;
  for (const FusedStep& step : fused.steps) {
    std::vector<Expr> args;
    for (const FusedStep::Ref& ref : step.args) {
      if (ref.is_input) {
        const Expr element = inputs[ref.index](nest.vars());
        args.push_back(moves ? element : loaded(element, fused.inputs[ref.index].dtype));
      } else {
        args.push_back(steps[ref.index](nest.vars()));
      }
    }
    const DType dtype = step.type.dtype;
    steps.emplace_back("step" + std::to_string(steps.size()));
    steps.back()(nest.vars()) =
        moves ? args[0] : rounded(apply_pointwise(step.op, dtype, args), dtype);
  }
  std::vector<Expr> results;
  for (uint32_t output : fused.outputs) {
    const Expr value = steps[output](nest.vars());
    results.push_back(moves ? value : stored(value, fused.steps[output].type.dtype));
  }
  const Outputs made = make_outputs(nest, results);
  pipeline.func = made.out;
  auto outputs = pipeline.func.output_buffers();
  fix_extents(outputs[0], loops.extents);  // the others' follow
  for (size_t i = 0; i < outputs.size(); ++i) {
    fix_strides(outputs[i], loops.strides[fused.inputs.size() + i]);
  }
  const Chunks chunks = choose_chunks(device_class, loops);
  schedule_nest(pipeline.func, nest, chunks.x, chunks.y, device_class == DeviceClass::kGpu);
  schedule_values(made, nest);
  if (loops.extents[0] == kLanes) pipeline.func.vectorize(nest.lane, kLanes);
  return pipeline;
}

// The target of the kernels built ahead of time: plain host code, OpenCL, nothing of the runtime.
Halide::Target jit_target() {
  using Halide::Target;
  const Target host = Halide::get_host_target();
  return Target(host.os, host.arch, host.bits,
                {Target::OpenCL, Target::NoRuntime, Target::NoAsserts, Target::NoBoundsQuery});
}

Halide::Internal::JITModule compile(const FusedPipeline& pipeline) {
  using Halide::Internal::JITModule;
  using Symbol = JITModule::Symbol;
  const std::string name = "fused";
  const Halide::Module module =
      Halide::Pipeline(pipeline.func).compile_to_module(pipeline.arguments, name, jit_target());
  JITModule runtime;
  const auto add = [&](const char* symbol, auto* function) {
    runtime.add_symbol_for_export(symbol, Symbol(reinterpret_cast<void*>(function)));
  };
  add("halide_opencl_initialize_kernels", &halide_opencl_initialize_kernels);
  add("halide_opencl_finalize_kernels", &halide_opencl_finalize_kernels);
  add("halide_opencl_run", &halide_opencl_run);
  add("halide_opencl_device_interface", &halide_opencl_device_interface);
  add("halide_copy_to_device", &halide_copy_to_device);
  return JITModule(module, module.get_function_by_name(name), {runtime});
}

Plan make_plan(DeviceClass device_class, const FusedPointwise& fused, InputStrides strides) {
  const Shape& shape = fused.steps[fused.outputs[0]].type.shape;
  if (TensorType{DType::kU8, shape}.elements() == 0) return {};
  strides.resize(strides.size() + fused.outputs.size(), broadcast_strides("fused", shape, shape));
  const Loops loops = make_loops(device_class, shape, strides);
  std::vector<HostArg> args;
  uint32_t slot = 0;
  for (const TensorType& input : fused.inputs) {
    args.push_back(loops.operand(slot, slot, input.dtype));
    ++slot;
  }
  for (uint32_t output : fused.outputs) {
    args.push_back(loops.operand(slot, slot, fused.steps[output].type.dtype));
    ++slot;
  }
  const std::string label = label_of(fused);
  try {
    const auto module = compile(build(device_class, fused, loops));
    Recorder recorder(elementwise_rules(device_class, loops));
    recorder.call(reinterpret_cast<HostFunction>(module.argv_function()), label, args);
    return recorder.finish();
  } catch (const Halide::Error& error) {
    fail(Code::kBuildFailed, "[{}] Halide: {}", label, error.what());
  }
}

}  // namespace

Plan plan_fused(DeviceClass device_class, const FusedPointwise& fused) {
  check(fused);
  const Shape& shape = fused.steps[fused.outputs[0]].type.shape;
  InputStrides strides;
  for (const TensorType& input : fused.inputs) {
    strides.push_back(broadcast_strides("fused", input.shape, shape));
  }
  return plan_fused_strided(device_class, fused, strides);
}

Plan plan_fused_strided(DeviceClass device_class, const FusedPointwise& fused,
                        const InputStrides& strides) {
  // One compilation at a time: they are rare, and a second request for the same chain then finds
  // it.
  static std::mutex mutex;
  static std::map<std::string, Plan> plans;
  const std::string key = describe(device_class, fused, strides);
  std::lock_guard<std::mutex> lock(mutex);
  const auto found = plans.find(key);
  if (found != plans.end()) return found->second;
  return plans.emplace(key, make_plan(device_class, fused, strides)).first->second;
}

}  // namespace ballast::kernels
