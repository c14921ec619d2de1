#include "kernels/recipe/jit_kernel.h"

#include "kernels/pointwise/pointwise_recipe.h"

#include <HalideRuntimeOpenCL.h>

#include <map>
#include <mutex>

extern "C" int halide_copy_to_device(void*, halide_buffer_t*, const halide_device_interface_t*);

namespace ballast::kernels {
namespace {

Halide::Internal::JITModule compile(const JitKernel& kernel) {
  using Halide::Internal::JITModule;
  using Symbol = JITModule::Symbol;
  const std::string name = "fused";
  const Halide::Module module =
      Halide::Pipeline(kernel.func)
          .compile_to_module(kernel.arguments, name, jit_target(kernel.has_wide_indices));
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

}  // namespace

// That of the kernels built ahead of time: plain host code, OpenCL, nothing of the runtime.
Halide::Target jit_target(bool has_wide_indices) {
  using Halide::Target;
  const Target host = Halide::get_host_target();
  Target target(host.os, host.arch, host.bits,
                {Target::OpenCL, Target::NoRuntime, Target::NoAsserts, Target::NoBoundsQuery});
  return has_wide_indices ? target.with_feature(Target::LargeBuffers) : target;
}

Halide::ImageParam add_fixed_input(JitKernel& kernel, DType dtype,
                                   const std::vector<int64_t>& extents,
                                   const std::vector<int64_t>& strides) {
  // Named here: Halide's own names count what the process has seen.
  const std::string name = "in" + std::to_string(kernel.arguments.size());
  Halide::ImageParam input(storage_type(dtype), static_cast<int>(extents.size()), name);
  fix_extents(input, extents);
  fix_strides(input, strides);
  kernel.arguments.push_back(input);
  return input;
}

void record_jit(Recorder& recorder, const std::function<JitKernel()>& build,
                const std::string& label, const std::vector<HostArg>& args) {
  try {
    const auto module = compile(build());
    recorder.call(reinterpret_cast<HostFunction>(module.argv_function()), label, args);
  } catch (const Halide::Error& error) {
    device::fail(device::Code::kBuildFailed, "[{}] Halide: {}", label, error.what());
  }
}

Plan plan_jit(const std::function<JitKernel()>& build, const SourceRules& rules,
              const std::string& label, const std::vector<HostArg>& args) {
  Recorder recorder(rules);
  record_jit(recorder, build, label, args);
  return recorder.finish();
}

Plan cached_jit_plan(const std::string& key, const std::function<Plan()>& make) {
  static std::mutex mutex;
  static std::map<std::string, Plan> plans;
  std::lock_guard<std::mutex> lock(mutex);
  const auto found = plans.find(key);
  if (found != plans.end()) return found->second;
  return plans.emplace(key, make()).first->second;
}

}  // namespace ballast::kernels
