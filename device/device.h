// One opened OpenCL device: context, pool, programs, default stream, counters.
//
// Devices are shared (std::shared_ptr); buffers, streams and everything above keep theirs alive.
#pragma once

#include "device/cl.h"
#include "device/error.h"
#include "device/launch.h"
#include "device/pool.h"

#include <atomic>
#include <memory>
#include <string>
#include <vector>

namespace ballast::device {

class Stream;
struct StreamState;
class ProgramCache;
class Tasks;
class Profile;

enum class DeviceClass : int { kCpu = 1, kGpu = 2 };  // the ABI's values

struct DeviceInfo {
  std::string name, platform, driver;
  uint64_t ordinal = 0;
  DeviceClass device_class = DeviceClass::kCpu;
  uint32_t compute_units = 0;
  uint64_t memory_bytes = 0;
  uint64_t buffer_alignment = 0;
  bool has_command_buffer = false;
  bool is_host_unified = false;

  bool is_pocl() const { return platform == "Portable Computing Language"; }
};

struct DeviceOptions {
  uint64_t memory_limit = 0;  // bytes; 0: none
  int device_class = 0;       // force a DeviceClass; 0: by type
  bool profile = false;
};

// See ballast_counters in include/ballast/profile.h for the meanings.
struct Counters {
  std::atomic<uint64_t> host_calls{0}, kernel_launches{0}, submits{0}, copies{0};
  std::atomic<uint64_t> bytes_to_device{0}, bytes_to_host{0}, bytes_on_device{0};
  std::atomic<uint64_t> programs_built{0}, programs_cached{0};
};

// All devices of all platforms, in a stable order (PoCL and other CPUs, GPUs: as platforms list
// them). Empty where no platform is installed.
std::vector<DeviceInfo> list_devices();

class Device : public std::enable_shared_from_this<Device> {
 public:
  // `selector` as in ballast_device_api.device_open. Two opens with equal device and options share.
  static std::shared_ptr<Device> open(const std::string& selector, const DeviceOptions& options);
  ~Device();
  Device(const Device&) = delete;

  const DeviceInfo& info() const;
  const DeviceOptions& options() const;
  cl_context context() const;
  cl_device_id id() const;
  Pool& pool();
  Counters& counters();
  Profile* profile();  // nullptr unless options().profile
  Stream& default_stream();
  // Builds (or finds) the program and returns a new kernel object of it, owned by the caller.
  // Thread-safe. Throws kBuildFailed with the log.
  KernelHandle make_kernel(const SourcePtr& source, const std::string& entry);
  // Builds (or finds) the program alone; the same.
  void build(const SourcePtr& source);
  // Builds (or finds) what runs the launch on any stream. Thread-safe; throws likewise.
  void prepare(const Launch& launch);
  Tasks* tasks();  // nullptr where launches are enqueued one by one
  // Builds the programs of these sources in parallel, so that later make_kernel calls find them.
  // `as_tasks`: where the device runs tasks, in that form.
  void prebuild(const std::vector<SourcePtr>& sources, bool as_tasks = true);
  // Waits for all streams of the device; throws the first failure of any.
  void sync();
  // Sticky failure: once set, every allocation and submit throws it.
  void mark_lost(const std::string& why);
  void check_usable() const;
  // For sync(); called by Stream.
  void add_stream(const std::shared_ptr<StreamState>& stream);

 private:
  struct Impl;
  explicit Device(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

using DevicePtr = std::shared_ptr<Device>;

}  // namespace ballast::device
