// Turns Halide's host functions into plans.
//
// A Halide host function (compiled ahead of time or just now) computes launch geometry and calls
// halide_opencl_run. This folder defines those runtime functions itself: they append what they are
// asked to run to the Recorder of the calling thread and touch no device. Operands are described by
// extents, strides and the slot that the plan's user will bind.
//
// A Recorder belongs to one thread; different threads record at the same time without sharing.
#pragma once

#include "device/device.h"
#include "kernels/plan/plan.h"
#include "kernels/plan/streaming.h"
#include "kernels/plan/workspace.h"

#include <exception>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace ballast::kernels {

// A buffer argument: dimensions innermost first, strides in elements (0 repeats). `mins` is the
// coordinate of the first element per dimension; empty for zeros.
struct Operand {
  uint32_t slot = 0;
  DType dtype = DType::kF32;
  std::vector<int64_t> extents;
  std::vector<int64_t> strides;
  std::vector<int64_t> mins;
};

// Row-major `shape` as an operand (its last dimension becomes dimension 0).
Operand dense_operand(uint32_t slot, DType dtype, const Shape& shape);

// One argument of a host function, in the generator's declared order (inputs, then outputs).
using HostArg = std::variant<Operand, int32_t, float>;
using HostFunction = int (*)(void** argv);

// A number for a kernel. Throws kUnimplemented, naming it and `label`, where it has more bits.
int32_t checked_int32(int64_t value, std::string_view label = "plan");

// How the OpenCL source that Halide wrote is adapted.
struct SourceRules {
  // An output may be the buffer of an input, so `restrict` is dropped.
  bool may_alias = true;
  // Memory is accessed through pointers that loops do not change and indices that they do.
  bool direct_access = false;
  // So are whole vectors on the stack: for kernels that read many in a loop, a constant apart.
  bool direct_stack = false;
  // Whole vectors of the results go past the caches, unless what a call passes over fits into the
  // last one. For results of 4-byte elements whose vectors are cache lines: see streaming.h.
  bool streams = false;
  // The distance of a vector's elements stays unknown to the compiler where a sink makes it a
  // constant: of one it knows, LLVM gathers quarters and halves, and single elements.
  bool hides_strides = false;
};

// For kernels whose outputs are never the buffers of inputs: values stay in registers. For those of
// them that compute addresses in inner loops.
inline const SourceRules kNoAliases{/*may_alias=*/false};
inline const SourceRules kDirectAccess{false, /*direct_access=*/true};

class Recorder {
 public:
  explicit Recorder(SourceRules rules = {}) : rules_(std::move(rules)) {}

  // SourceRules::streams of the calls that follow, where they touch more than `most_kept` bytes.
  void set_streams(bool streams, int64_t most_kept = last_cache_bytes()) {
    rules_.streams = streams;
    most_kept_ = most_kept;
  }
  // Runs `function` and appends its launches, each labelled `label`.
  void call(HostFunction function, const std::string& label, const std::vector<HostArg>& args);
  // The same with the kernel of this name built ahead of time (see aot_kernel).
  void call(const std::string& kernel, device::DeviceClass device_class,
            const std::vector<HostArg>& args);
  // The last two launches, which do not depend on each other, become one; see join_launches.h.
  void join_beside(const std::vector<int64_t>& begins = {});
  // The last `count` launches become one; see join_after in join_launches.h.
  void join_after(size_t count);
  size_t launch_count() const { return plan_.launches.size(); }
  // The launches so far; leaves the recorder empty.
  Plan finish(const Workspace& workspace);
  Plan finish(uint64_t workspace_bytes = 0);

 private:
  friend struct RecorderHooks;
  SourceRules rules_;
  int64_t most_kept_ = last_cache_bytes();
  Plan plan_;
  // Of the call that runs.
  std::string label_;
  SourceRules call_rules_;
  uint64_t call_bytes_ = 0;
  std::exception_ptr failure_;  // exceptions do not pass through Halide's frames
};

// The host function built ahead of time from the manifest row `name` for this class of device.
// Throws kUnimplemented naming the kernel where there is no such row.
HostFunction aot_kernel(const std::string& name, device::DeviceClass device_class);
bool has_aot_kernel(const std::string& name);

// The part of a Halide OpenCL module that the kernel `entry` needs, adapted by `rules`.
std::string extract_kernel(std::string_view module, std::string_view entry,
                           const SourceRules& rules);

}  // namespace ballast::kernels
