#include "device/device.h"

#include "device/profile.h"
#include "device/program_cache.h"
#include "device/region.h"
#include "device/select.h"
#include "device/stream.h"
#include "device/stream_state.h"
#include "device/tasks.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <tuple>
#include <utility>

namespace ballast::device {

struct Device::Impl {
  FoundDevice found;
  DeviceOptions options;
  ContextHandle context;
  Counters counters;
  std::unique_ptr<Profile> profile;
  std::atomic<bool> is_lost{false};
  std::optional<Error> lost;  // written once, before is_lost
  std::mutex mutex;           // streams, lost
  std::vector<std::weak_ptr<StreamState>> streams;
  // Destroyed first to last from below: the stream finishes before programs and memory go.
  std::unique_ptr<Pool> pool;
  std::unique_ptr<ProgramCache> programs;
  std::unique_ptr<Tasks> tasks;  // none with a profile, which is of launches
  std::unique_ptr<Stream> default_stream;
};

Device::Device(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Device::~Device() = default;

std::shared_ptr<Device> Device::open(const std::string& selector, const DeviceOptions& options) {
  check_process();
  if (options.device_class < 0 || options.device_class > int(DeviceClass::kGpu)) {
    fail(Code::kInvalidArgument, "[device_open] device_class {} is unknown", options.device_class);
  }
  FoundDevice found = select_device(selector);

  // Leaked, so that no destructor order at exit matters.
  static std::mutex& mutex = *new std::mutex;
  using Key = std::tuple<cl_device_id, uint64_t, int, bool>;
  static auto& opened = *new std::map<Key, std::weak_ptr<Device>>;
  std::lock_guard lock(mutex);
  std::weak_ptr<Device>& entry =
      opened[{found.id, options.memory_limit, options.device_class, options.profile}];
  if (std::shared_ptr<Device> device = entry.lock()) {
    if (!device->impl_->is_lost) return device;
  }

  auto impl = std::make_unique<Impl>();
  if (options.device_class != 0) found.info.device_class = DeviceClass(options.device_class);
  impl->found = found;
  impl->options = options;
  const cl_context_properties properties[] = {
      CL_CONTEXT_PLATFORM, reinterpret_cast<cl_context_properties>(found.platform), 0};
  cl_int code = CL_SUCCESS;
  impl->context.reset(clCreateContext(properties, 1, &found.id, nullptr, nullptr, &code));
  cl_check(code, "clCreateContext");
  impl->pool = std::make_unique<Pool>(impl->context.get(), options.memory_limit,
                                      found.info.buffer_alignment);
  if (options.profile) impl->profile = std::make_unique<Profile>();
  std::shared_ptr<Device> device(new Device(std::move(impl)));
  device->impl_->programs = std::make_unique<ProgramCache>(*device);
  device->impl_->tasks = Tasks::make(*device);
  device->impl_->default_stream = std::make_unique<Stream>(*device);
  // Freed memory was used by the default stream alone, or by work that the pool waits for. Drivers
  // know which buffers launches use, not where tasks and a stitched kernel's workers point, and
  // free shared memory at once.
  if (found.info.is_pocl() || is_memory_shared(found.id)) {
    device->impl_->pool->set_before_release(
        [stream = device->impl_->default_stream.get()] { stream->state().drain(); });
  }
  entry = device;
  return device;
}

const DeviceInfo& Device::info() const { return impl_->found.info; }
const DeviceOptions& Device::options() const { return impl_->options; }
cl_context Device::context() const { return impl_->context.get(); }
cl_device_id Device::id() const { return impl_->found.id; }
Pool& Device::pool() { return *impl_->pool; }
Counters& Device::counters() { return impl_->counters; }
Profile* Device::profile() { return impl_->profile.get(); }
Tasks* Device::tasks() { return impl_->tasks.get(); }
Stream& Device::default_stream() { return *impl_->default_stream; }

KernelHandle Device::make_kernel(const SourcePtr& source, const std::string& entry) {
  check_usable();
  const cl_program program = impl_->programs->get(source);
  cl_int code = CL_SUCCESS;
  KernelHandle kernel(clCreateKernel(program, entry.c_str(), &code));
  if (code == CL_INVALID_KERNEL_NAME) {
    fail(Code::kNotFound, "[{}] the program has no kernel of this name", entry);
  }
  cl_check(code, "clCreateKernel");
  return kernel;
}

void Device::build(const SourcePtr& source) {
  check_usable();
  impl_->programs->get(source);
}

void Device::prepare(const Launch& launch) {
  const bool is_task = impl_->tasks && may_be_task(launch) && impl_->tasks->find(launch) != nullptr;
  if (!is_task) make_kernel(launch.source, launch.kernel);
}

// PoCL 3.1 holds one lock around the compiler (four builds: 345 ms in turn, 400 ms from four
// threads), so there threads only overlap the reading of cached binaries; Intel's runtime is not
// faster in parallel either. Two threads keep that overlap without crowding out the host.
void Device::prebuild(const std::vector<SourcePtr>& sources, bool as_tasks) {
  check_usable();
  std::atomic<size_t> next{0};
  std::mutex mutex;
  std::exception_ptr first_failure;
  auto build = [&] {
    for (size_t i = next++; i < sources.size(); i = next++) {
      try {
        const bool is_built = as_tasks && impl_->tasks && impl_->tasks->prebuild(sources[i]);
        if (!is_built) impl_->programs->get(sources[i]);
      } catch (...) {
        std::lock_guard lock(mutex);
        if (!first_failure) first_failure = std::current_exception();
      }
    }
  };
  if (sources.size() > 1) {
    std::thread helper(build);
    build();
    helper.join();
  } else {
    build();
  }
  if (first_failure) std::rethrow_exception(first_failure);
}

void Device::add_stream(const std::shared_ptr<StreamState>& stream) {
  std::lock_guard lock(impl_->mutex);
  auto& streams = impl_->streams;
  const auto is_gone = [](const std::weak_ptr<StreamState>& s) { return s.expired(); };
  streams.erase(std::remove_if(streams.begin(), streams.end(), is_gone), streams.end());
  streams.push_back(stream);
}

void Device::sync() {
  check_usable();
  std::vector<std::shared_ptr<StreamState>> streams;
  {
    std::lock_guard lock(impl_->mutex);
    for (const auto& stream : impl_->streams) {
      if (auto alive = stream.lock()) streams.push_back(std::move(alive));
    }
  }
  std::optional<Error> first;
  for (const auto& stream : streams) {
    try {
      stream->wait();
    } catch (const Error& error) {
      if (!first) first = error;  // the others are waited for all the same
    }
  }
  if (first) throw *first;
}

void Device::mark_lost(const std::string& why) {
  std::lock_guard lock(impl_->mutex);
  if (impl_->lost) return;
  impl_->lost.emplace(Code::kDeviceLost,
                      fmt::format("[{}] the device was lost: {}", impl_->found.info.name, why));
  impl_->is_lost.store(true, std::memory_order_release);
}

void Device::check_usable() const {
  check_process();
  if (impl_->is_lost.load(std::memory_order_acquire)) throw *impl_->lost;
}

}  // namespace ballast::device
