#include "kernels/plan/halide_runtime.h"

#include "kernels/plan/aot_table.h"
#include "kernels/plan/join_launches.h"
#include "kernels/source/source_names.h"

#include <HalideRuntimeOpenCL.h>
#include <xxhash.h>

#include <cstdlib>
#include <cstring>
#include <deque>
#include <limits>
#include <mutex>
#include <unordered_map>

namespace ballast::kernels {
namespace {

using device::Code;
using device::fail;

thread_local Recorder* recording = nullptr;

halide_type_t halide_type(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return halide_type_t(halide_type_float, 32);
    case DType::kF64:
      return halide_type_t(halide_type_float, 64);
    case DType::kF16:
      return halide_type_t(halide_type_float, 16);
    case DType::kBF16:
      return halide_type_t(halide_type_bfloat, 16);
    case DType::kI32:
      return halide_type_t(halide_type_int, 32);
    case DType::kI64:
      return halide_type_t(halide_type_int, 64);
    case DType::kU8:
    case DType::kBool:
      return halide_type_t(halide_type_uint, 8);
  }
  fail(Code::kInternal, "[record] element type {} has no Halide type", static_cast<int>(dtype));
}

// What a halide_buffer_t points at.
struct BoundBuffer {
  halide_buffer_t buffer{};
  std::vector<halide_dimension_t> dims;

  BoundBuffer(const Operand& operand, const std::string& label) : dims(operand.extents.size()) {
    int64_t last = 0;
    for (size_t i = 0; i < dims.size(); ++i) {
      dims[i].min = operand.mins.empty() ? 0 : checked_int32(operand.mins[i], label);
      dims[i].extent = checked_int32(operand.extents[i], label);
      dims[i].stride = checked_int32(operand.strides[i], label);
      last += (operand.extents[i] - 1) * operand.strides[i];
    }
    checked_int32(last, label);
    buffer.device = uint64_t{operand.slot} + 1;  // Halide takes 0 for "not on the device"
    buffer.device_interface = halide_opencl_device_interface();
    buffer.type = halide_type(operand.dtype);
    buffer.dimensions = static_cast<int32_t>(dims.size());
    buffer.dim = dims.data();
  }
};

// The operands' bytes, if each has `elements_of` it.
template <class Elements>
auto operand_bytes(const std::vector<HostArg>& args, const Elements& elements_of) {
  using Count = decltype(elements_of(Operand{}));
  Count bytes = 0;
  for (const HostArg& arg : args) {
    const auto* operand = std::get_if<Operand>(&arg);
    if (operand == nullptr) continue;
    bytes += elements_of(*operand) * static_cast<Count>(size_of(operand->dtype));
  }
  return bytes;
}

// From the first to the last element of every operand.
int64_t touched_bytes(const std::vector<HostArg>& args) {
  return operand_bytes(args, [](const Operand& operand) {
    int64_t elements = 1;
    for (size_t d = 0; d < operand.extents.size(); ++d) {
      elements += (operand.extents[d] - 1) * std::abs(operand.strides[d]);
    }
    return elements;
  });
}

// An element as often as it takes part.
uint64_t passed_bytes(const std::vector<HostArg>& args) {
  return operand_bytes(args, [](const Operand& operand) {
    uint64_t elements = 1;
    for (const int64_t extent : operand.extents) elements *= static_cast<uint64_t>(extent);
    return elements;
  });
}

// The sources of all kernels recorded so far. Equal ones share one object, so that programs are
// built once and plans stay small.
class Sources {
 public:
  // What extract_kernel gives for these, which takes far longer than to find it again. A module is
  // known by its content: that of a freed one may have made room for another.
  device::SourcePtr find(std::string_view module, const char* entry, const SourceRules& rules) {
    const XXH128_hash_t hash = XXH3_128bits(module.data(), module.size());
    const std::string key = fmt::format("{:016x}{:016x}{}{:d}{:d}{:d}{:d}{:d}", hash.high64,
                                        hash.low64, entry, rules.may_alias, rules.direct_access,
                                        rules.direct_stack, rules.streams, rules.hides_strides);
    {
      std::lock_guard<std::mutex> lock(mutex_);
      const auto found = by_kernel_.find(key);
      if (found != by_kernel_.end()) return found->second;
    }
    device::SourcePtr source =
        device::make_source(extract_kernel(module, entry, rules), /*options=*/"",
                            /*packs_scalars=*/true);
    std::lock_guard<std::mutex> lock(mutex_);
    source = by_id_.emplace(source->id, source).first->second;
    return by_kernel_.emplace(key, source).first->second;
  }

 private:
  std::mutex mutex_;
  std::unordered_map<std::string, device::SourcePtr> by_kernel_, by_id_;
};

Sources& sources() {
  static auto* all = new Sources;  // never destroyed: other statics may record
  return *all;
}

}  // namespace

struct RecorderHooks {
  static void append(const char* module, const char* entry, const std::array<uint64_t, 3>& groups,
                     const std::array<uint64_t, 3>& local, int shared_bytes, const size_t* sizes,
                     void* const* args, const int8_t* is_buffer) {
    Recorder& recorder = *recording;
    if (groups[0] * groups[1] * groups[2] == 0) return;
    device::Launch launch;
    launch.source = sources().find(module, entry, recorder.call_rules_);
    launch.kernel = kernel_name_in(launch.source->text);
    launch.label = recorder.label_;
    launch.bytes = recorder.call_bytes_;
    launch.local = local;
    for (int i = 0; i < 3; ++i) launch.global[i] = groups[i] * local[i];
    for (size_t i = 0; sizes[i] != 0; ++i) {
      device::Arg arg;
      if (is_buffer[i]) {
        arg.kind = device::Arg::Kind::kBuffer;
        arg.slot = static_cast<uint32_t>(static_cast<halide_buffer_t*>(args[i])->device - 1);
      } else {
        arg.size = static_cast<uint8_t>(sizes[i]);
        std::memcpy(&arg.bits, args[i], sizes[i]);
      }
      launch.args.push_back(arg);
    }
    // Halide's kernels end with a __local pointer whether they use it or not; OpenCL wants >= 1
    // byte.
    device::Arg shared;
    shared.kind = device::Arg::Kind::kLocal;
    shared.bits = shared_bytes > 0 ? static_cast<uint64_t>(shared_bytes) : 1;
    launch.args.push_back(shared);
    recorder.plan_.launches.push_back(std::move(launch));
  }

  static void stash() noexcept { recording->failure_ = std::current_exception(); }
};

int32_t checked_int32(int64_t value, std::string_view label) {
  if (value < std::numeric_limits<int32_t>::min() || value > std::numeric_limits<int32_t>::max()) {
    fail(Code::kUnimplemented, "[{}] an index of {} does not fit the kernels' 32 bits", label,
         value);
  }
  return static_cast<int32_t>(value);
}

Operand dense_operand(uint32_t slot, DType dtype, const Shape& shape) {
  Operand operand{slot, dtype, {shape.rbegin(), shape.rend()}, {}, {}};
  int64_t stride = 1;
  for (int64_t extent : operand.extents) {
    operand.strides.push_back(stride);
    stride *= extent;
  }
  return operand;
}

void Recorder::call(HostFunction function, const std::string& label,
                    const std::vector<HostArg>& args) {
  label_ = label;
  call_rules_ = rules_;
  call_rules_.streams = rules_.streams && touched_bytes(args) > most_kept_;
  call_bytes_ = passed_bytes(args);
  std::deque<BoundBuffer> buffers;
  std::vector<void*> argv;
  for (const HostArg& arg : args) {
    if (const auto* operand = std::get_if<Operand>(&arg)) {
      argv.push_back(&buffers.emplace_back(*operand, label).buffer);
    } else if (const auto* number = std::get_if<int32_t>(&arg)) {
      argv.push_back(const_cast<int32_t*>(number));
    } else {
      argv.push_back(const_cast<float*>(&std::get<float>(arg)));
    }
  }
  recording = this;
  const int status = function(argv.data());
  recording = nullptr;
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  if (status != 0) fail(Code::kInternal, "[{}] Halide's host code gave status {}", label, status);
}

void Recorder::call(const std::string& kernel, device::DeviceClass device_class,
                    const std::vector<HostArg>& args) {
  call(aot_kernel(kernel, device_class), kernel, args);
}

void Recorder::join_beside(const std::vector<int64_t>& begins) {
  std::vector<device::Launch>& launches = plan_.launches;
  const device::Launch second = std::move(launches.back());
  launches.pop_back();
  launches.back() = kernels::join_beside(launches.back(), second, begins);
}

void Recorder::join_after(size_t count) {
  std::vector<device::Launch>& launches = plan_.launches;
  const std::vector<device::Launch> last(launches.end() - count, launches.end());
  launches.resize(launches.size() - count);
  launches.push_back(kernels::join_after(last));
}

Plan Recorder::finish(const Workspace& workspace) {
  Plan plan = finish(workspace.bytes());
  plan.regions = workspace.regions();
  return plan;
}

Plan Recorder::finish(uint64_t workspace_bytes) {
  plan_.workspace_bytes = workspace_bytes;
  return std::exchange(plan_, {});
}

namespace {

const AotRow* find_row(const std::string& name) {
  for (const AotRow* row = aot_rows(); row->name != nullptr; ++row) {
    if (row->name == name) return row;
  }
  return nullptr;
}

}  // namespace

bool has_aot_kernel(const std::string& name) { return find_row(name) != nullptr; }

HostFunction aot_kernel(const std::string& name, device::DeviceClass device_class) {
  const AotRow* row = find_row(name);
  const bool is_cpu = device_class == device::DeviceClass::kCpu;
  const HostFunction function = row == nullptr ? nullptr : is_cpu ? row->cpu : row->gpu;
  if (function == nullptr) {
    fail(Code::kUnimplemented, "[{}] no kernel of this name was built for this class of device",
         name);
  }
  return function;
}

}  // namespace ballast::kernels

// ---- the runtime functions that Halide's host code calls

using ballast::kernels::RecorderHooks;

extern "C" {

int halide_opencl_initialize_kernels(void*, void** state, const char* source, int) {
  __atomic_store_n(state, const_cast<char*>(source), __ATOMIC_RELAXED);
  return 0;
}

void halide_opencl_finalize_kernels(void*, void*) {}

int halide_opencl_run(void*, void* state, const char* entry, int groups_x, int groups_y,
                      int groups_z, int local_x, int local_y, int local_z, int shared_bytes,
                      size_t sizes[], void* args[], int8_t is_buffer[]) {
  const auto u = [](int v) { return static_cast<uint64_t>(v); };
  try {
    RecorderHooks::append(
        static_cast<const char*>(state), entry, {u(groups_x), u(groups_y), u(groups_z)},
        {u(local_x), u(local_y), u(local_z)}, shared_bytes, sizes, args, is_buffer);
  } catch (...) {
    RecorderHooks::stash();
    return -1;
  }
  return 0;
}

// Nothing is ever copied or freed through Halide: its address serves as a mark only.
const halide_device_interface_t* halide_opencl_device_interface() {
  static const char mark = 0;
  return reinterpret_cast<const halide_device_interface_t*>(&mark);
}

int halide_copy_to_device(void*, halide_buffer_t*, const halide_device_interface_t*) { return 0; }

}  // extern "C"
