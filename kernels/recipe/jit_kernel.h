// Kernels that Halide compiles at run time, for exact shapes. Needs Halide; thread-safe but for
// what the caller does to the Func.
#pragma once

#include "kernels/plan/halide_runtime.h"

#include <Halide.h>

#include <functional>
#include <string>
#include <vector>

namespace ballast::kernels {

// A scheduled pipeline with all extents and strides fixed, and its arguments before the outputs.
struct JitKernel {
  Halide::Func func;
  std::vector<Halide::Argument> arguments;
  bool has_wide_indices = false;  // WIDE in kernels.cmake
};

// What kernels are compiled for at run time, and built by a generator for.
Halide::Target jit_target(bool has_wide_indices);

// A new input whose extents and strides (innermost first) are fixed; it becomes an argument.
Halide::ImageParam add_fixed_input(JitKernel& kernel, DType dtype,
                                   const std::vector<int64_t>& extents,
                                   const std::vector<int64_t>& strides);

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

// Appends the launches of what `build` makes, each labelled `label`. Throws kBuildFailed with
// Halide's words where it refuses.
void record_jit(Recorder& recorder, const std::function<JitKernel()>& build,
                const std::string& label, const std::vector<HostArg>& args);
// These launches alone.
Plan plan_jit(const std::function<JitKernel()>& build, const SourceRules& rules,
              const std::string& label, const std::vector<HostArg>& args);

// The plan made before for this key, or else `make`'s now. A key says everything that a plan
// depends on. One plan is made at a time: they are rare, and who asks a second time then finds it.
Plan cached_jit_plan(const std::string& key, const std::function<Plan()>& make);

}  // namespace ballast::kernels
