#include "device/program_cache.h"

#include "device/build_lock.h"
#include "device/builtins.h"
#include "device/called_bodies.h"
#include "device/device.h"
#include "device/disk_cache.h"
#include "device/kernel_parameter.h"
#include "device/packed_scalars.h"

#include <spdlog/spdlog.h>
#include <xxhash.h>

#include <cstdlib>
#include <mutex>
#include <string_view>
#include <unordered_map>

namespace ballast::device {
namespace {

struct Entry {
  std::mutex mutex;  // held while building, so that a second asker waits
  ProgramHandle program;
};

// "conv_f32, bias_f32": the kernels of a source, for messages.
std::string kernel_names(const std::string& text) {
  std::string names;
  for (size_t open = 0; (open = text.find('(', open)) != std::string::npos; ++open) {
    const std::string_view name = kernel_name_before(text, open);
    if (name.empty() || name == "_at_least_one_kernel") continue;  // Halide's placeholder
    names.append(names.empty() ? "" : ", ").append(name);
  }
  return names;
}

// PoCL keeps what it compiled in a folder of its own, where it finds it in 10 ms; before it hands
// out a binary, it compiles all of a program's kernels once more, for any local size.
DiskCache disk_cache_for(const Device& device) {
  const char* pocl_cache = std::getenv("POCL_KERNEL_CACHE");
  const bool is_kept =
      device.info().is_pocl() && (pocl_cache == nullptr || std::string_view(pocl_cache) != "0");
  return is_kept && !DiskCache::is_asked_for() ? DiskCache({}) : DiskCache::from_environment();
}

// GPUs round quotients and roots to 2.5 and 3 units in the last place unless they are asked for the
// nearest float; CPUs know no other way.
std::string rounding_options(Device& device) {
  if (device.info().device_class != DeviceClass::kGpu) return "";
  const auto config = device_value<cl_device_fp_config>(device.id(), CL_DEVICE_SINGLE_FP_CONFIG);
  const bool is_known = (config & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT) != 0;
  return is_known ? " -cl-fp32-correctly-rounded-divide-sqrt" : "";
}

// Whether the compiler can be told how many registers a program may use.
bool limits_registers(Device& device) {
  const std::string extensions = device_text(device.id(), CL_DEVICE_EXTENSIONS);
  return extensions.find("cl_nv_compiler_options") != std::string::npos;
}

// What "#pragma ballast registers N", with which a source begins, says to such a compiler.
std::string register_options(const std::string& text) {
  constexpr std::string_view kPragma = "#pragma ballast registers ";
  if (text.compare(0, kPragma.size(), kPragma) != 0) return "";
  return fmt::format(" -cl-nv-maxrregcount={}", std::atoi(&text[kPragma.size()]));
}

std::string build_log(cl_program program, cl_device_id id) {
  size_t size = 0;
  clGetProgramBuildInfo(program, id, CL_PROGRAM_BUILD_LOG, 0, nullptr, &size);
  std::string log(size, '\0');
  clGetProgramBuildInfo(program, id, CL_PROGRAM_BUILD_LOG, size, log.data(), nullptr);
  return log.c_str();
}

}  // namespace

struct ProgramCache::Impl {
  explicit Impl(Device& owner)
      : device(owner),
        rounding(rounding_options(owner)),
        has_register_limit(limits_registers(owner)),
        disk(disk_cache_for(owner)) {}
  Device& device;
  const std::string rounding;
  const bool has_register_limit;
  DiskCache disk;
  std::mutex mutex;
  std::unordered_map<std::string, std::shared_ptr<Entry>> entries;

  std::string options_of(const Source& source) const {
    return source.options + rounding + (has_register_limit ? register_options(source.text) : "");
  }

  std::string file_name(const Source& source) const {
    const DeviceInfo& info = device.info();
    const std::string key = fmt::format("2\n{}{}\n{}\n{}\n{}", source.id, rounding, info.name,
                                        info.platform, info.driver);
    const XXH128_hash_t hash = XXH3_128bits(key.data(), key.size());
    return fmt::format("{:016x}{:016x}.bin", hash.high64, hash.low64);
  }

  ProgramHandle load(const Source& source, const std::string& name) {
    const std::optional<std::string> bytes = disk.load(name);
    if (!bytes) return nullptr;
    const cl_device_id id = device.id();
    const size_t size = bytes->size();
    const auto* data = reinterpret_cast<const unsigned char*>(bytes->data());
    cl_int code = CL_SUCCESS, status = CL_SUCCESS;
    ProgramHandle program(
        clCreateProgramWithBinary(device.context(), 1, &id, &size, &data, &status, &code));
    if (code == CL_SUCCESS && status == CL_SUCCESS &&
        clBuildProgram(program.get(), 1, &id, options_of(source).c_str(), nullptr, nullptr) ==
            CL_SUCCESS) {
      ++device.counters().programs_cached;
      return program;
    }
    spdlog::warn("[cache] the driver refuses the stored program {}; it is built anew", name);
    disk.remove(name);
    return nullptr;
  }

  // The program, or nothing where it does not compile; `log` says why.
  ProgramHandle try_build(const std::string& text, const std::string& options,
                          std::string* log) const {
    const cl_device_id id = device.id();
    const char* data = text.data();
    const size_t size = text.size();
    cl_int code = CL_SUCCESS;
    ProgramHandle program(clCreateProgramWithSource(device.context(), 1, &data, &size, &code));
    cl_check(code, "clCreateProgramWithSource");
    // Without warnings: where vectors are longer than the CPU's, PoCL prints hundreds.
    const std::string quiet = options + " -w";
    code = clBuildProgram(program.get(), 1, &id, quiet.c_str(), nullptr, nullptr);
    if (code == CL_SUCCESS) return program;
    if (log != nullptr) {
      *log = fmt::format("{} (options \"{}\")\n{}", cl_code_name(code), options,
                         build_log(program.get(), id));
    }
    return nullptr;
  }

  ProgramHandle build(const Source& source) {
    const auto packed = [&](const std::string& text) {
      return source.packs_scalars ? pack_scalars(text) : text;
    };
    ProgramHandle program;
    if (device.info().is_pocl()) {
      const std::string text = packed(call_bodies(source.text));
      if (const std::optional<std::string> builtins = declare_builtins(source.text)) {
        program = try_build(*builtins + text, options_of(source) + kWithoutHeader, nullptr);
      }
      if (!program) program = try_build(text, options_of(source), nullptr);
    }
    std::string log;  // its line numbers are those of the source
    if (!program) program = try_build(packed(source.text), options_of(source), &log);
    if (!program) fail(Code::kBuildFailed, "[build] {}: {}", kernel_names(source.text), log);
    ++device.counters().programs_built;
    return program;
  }

  void store(cl_program program, const std::string& name) {
    size_t size = 0;
    if (disk.is_off() ||
        clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof(size), &size, nullptr) !=
            CL_SUCCESS ||
        size == 0) {
      return;  // a driver without binaries
    }
    std::string bytes(size, '\0');
    auto* data = reinterpret_cast<unsigned char*>(bytes.data());
    if (clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof(data), &data, nullptr) ==
        CL_SUCCESS) {
      disk.store(name, bytes);
    }
  }
};

ProgramCache::ProgramCache(Device& device) : impl_(new Impl(device)) {}
ProgramCache::~ProgramCache() = default;

cl_program ProgramCache::get(const SourcePtr& source) {
  std::shared_ptr<Entry> entry;
  {
    std::lock_guard lock(impl_->mutex);
    std::shared_ptr<Entry>& slot = impl_->entries[source->id];
    if (!slot) slot = std::make_shared<Entry>();
    entry = slot;
  }
  std::lock_guard lock(entry->mutex);
  if (entry->program) return entry->program.get();
  const std::string name = impl_->file_name(*source);
  const BuildLock build_lock(XXH3_64bits(name.data(), name.size()));
  entry->program = impl_->load(*source, name);
  if (!entry->program) {
    entry->program = impl_->build(*source);
    impl_->store(entry->program.get(), name);
  }
  return entry->program.get();
}

}  // namespace ballast::device
