#include "frontend/backend/backend.h"

#include "frontend/backend/plugin.h"
#include "frontend/tensor/error.h"

#include <cstdlib>

namespace ballast {

namespace {

const ballast_device_api& device_api() { return *plugin().device; }

constexpr size_t kSpareOutputs = 8;   // see most_outputs
constexpr size_t kMaxScalars = 4096;  // a loop over ever new numbers must not hold all of them

// Never destroyed: tensors of static storage duration may outlive any static of ours.
struct Process {
  std::mutex mutex;
  std::shared_ptr<Device> device;
  std::atomic<const Device*> current{nullptr};  // the same, to be compared without the lock
  std::unordered_map<std::string, std::vector<TensorType>> inferred;
};
Process& process() {
  static auto* instance = new Process;
  return *instance;
}

}  // namespace

Buffer::Buffer(std::shared_ptr<Device> device, uint64_t bytes)
    : device_(std::move(device)), handle_(device_->take_buffer(bytes)), bytes_(bytes) {}

Buffer::~Buffer() { device_->give_back(handle_, bytes_); }

BufferPtr copy_of(const Buffer& buffer) {
  BufferPtr copy = buffer.device()->allocate(buffer.bytes());
  buffer.device()->copy(*copy, 0, buffer, 0, buffer.bytes());
  return copy;
}

Device::Device(const std::string& selector, const DeviceOptions& options) {
  ballast_device_options abi = BALLAST_INIT(ballast_device_options);
  abi.memory_limit = options.memory_limit;
  abi.device_class = options.device_class;
  abi.profile = options.profile;
  check(device_api().device_open(to_abi(selector), &abi, &handle_));
  check(device_api().stream_default(handle_, &stream_));
}

Device::~Device() {
  scalars_.clear();
  ops_.clear();
  spares_.release_all();
  const ballast_api& api = plugin();
  if (ballast_error* error = api.device->stream_release(stream_)) api.error_destroy(error);
  if (ballast_error* error = api.device->device_release(handle_)) api.error_destroy(error);
}

BufferPtr Device::allocate(uint64_t bytes) {
  return std::make_shared<Buffer>(shared_from_this(), bytes);
}

ballast_buffer* Device::take_buffer(uint64_t bytes) {
  if (ballast_buffer* spare = spares_.take(bytes)) return spare;
  ballast_buffer* made = nullptr;
  ballast_error* error = device_api().buffer_create(handle_, bytes, &made);
  if (error && plugin().error_code(error) == BALLAST_OUT_OF_DEVICE_MEMORY &&
      spares_.release_all()) {
    plugin().error_destroy(error);
    error = device_api().buffer_create(handle_, bytes, &made);
  }
  check(error);
  return made;
}

void Device::give_back(ballast_buffer* buffer, uint64_t bytes) {
  if (!spares_.keep(buffer, bytes)) release_buffer(buffer);
}

void Device::release_spares() { spares_.release_all(); }

void Device::upload(const Buffer& target, const void* source, uint64_t bytes) {
  if (bytes == 0) return;
  check(device_api().copy_from_host(stream_, target.handle(), 0, source, bytes));
}

void Device::download(void* target, const Buffer& source, uint64_t bytes) {
  if (bytes == 0) return;
  check(device_api().copy_to_host(stream_, target, source.handle(), 0, bytes));
}

void Device::fill(const Buffer& target, const std::vector<uint8_t>& element) {
  if (target.bytes() == 0) return;
  check(device_api().fill(stream_, target.handle(), 0, target.bytes(), element.data(),
                          element.size()));
}

void Device::copy(const Buffer& target, uint64_t target_offset, const Buffer& source,
                  uint64_t source_offset, uint64_t bytes) {
  if (bytes == 0) return;
  check(device_api().copy(stream_, target.handle(), target_offset, source.handle(), source_offset,
                          bytes));
}

BufferPtr Device::scalar(const std::vector<uint8_t>& element) {
  std::string key(element.begin(), element.end());
  std::lock_guard lock(mutex_);
  if (scalars_.size() >= kMaxScalars) scalars_.clear();
  BufferPtr& buffer = scalars_[key];
  if (!buffer) {
    buffer = allocate(element.size());
    fill(*buffer, element);
  }
  return buffer;
}

void Device::forget_scalars() {
  std::unordered_map<std::string, BufferPtr> released;
  std::lock_guard lock(mutex_);
  released.swap(scalars_);
}

void Device::sync() { check(device_api().stream_sync(stream_)); }

std::shared_ptr<Device> device() {
  Process& state = process();
  std::lock_guard lock(state.mutex);
  if (!state.device) {
    state.device = std::make_shared<Device>("", DeviceOptions{});
    state.current = state.device.get();
  }
  return state.device;
}

bool is_current(const Device& device) { return process().current == &device; }

void set_device(const std::string& selector, const DeviceOptions& options) {
  auto opened = std::make_shared<Device>(selector, options);
  Process& state = process();
  std::lock_guard lock(state.mutex);
  state.device.swap(opened);
  state.current = state.device.get();
  if (opened) opened->forget_scalars();  // they own their device in turn
}

namespace {

DeviceInfo from_abi(const ballast_device_info& abi) {
  DeviceInfo info;
  info.name = ballast::from_abi(abi.name);
  info.platform = ballast::from_abi(abi.platform);
  info.driver = ballast::from_abi(abi.driver);
  info.ordinal = abi.ordinal;
  info.device_class = abi.device_class;
  info.compute_units = abi.compute_units;
  info.memory_bytes = abi.memory_bytes;
  info.has_command_buffer = abi.has_command_buffer != 0;
  info.is_host_unified = abi.is_host_unified != 0;
  return info;
}

}  // namespace

std::vector<DeviceInfo> list_devices() {
  uint64_t count = 0;
  check(device_api().device_count(&count));
  std::vector<DeviceInfo> devices;
  for (uint64_t ordinal = 0; ordinal < count; ++ordinal) {
    ballast_device_info abi = BALLAST_INIT(ballast_device_info);
    check(device_api().device_describe(ordinal, &abi));
    devices.push_back(from_abi(abi));
  }
  return devices;
}

DeviceInfo device_info() {
  ballast_device_info abi = BALLAST_INIT(ballast_device_info);
  check(device_api().device_info(device()->handle(), &abi));
  return from_abi(abi);
}

Counters counters() {
  Counters counters = BALLAST_INIT(ballast_counters);
  check(plugin().profile->counters(device()->handle(), &counters));
  return counters;
}

MemoryStats memory_stats() {
  device()->release_spares();
  MemoryStats stats = BALLAST_INIT(ballast_memory_stats);
  check(device_api().device_memory_stats(device()->handle(), &stats));
  return stats;
}

void reset_peak_memory() {
  device()->release_spares();
  check(device_api().device_reset_peak(device()->handle()));
}

void trim_memory() {
  device()->release_spares();
  check(device_api().device_trim(device()->handle()));
}

void synchronize() { check(device_api().device_sync(device()->handle())); }

std::vector<ProfileRow> drain_profile() {
  std::vector<ProfileRow> rows;
  auto append = [](void* user, const ballast_profile_row* row) {
    static_cast<std::vector<ProfileRow>*>(user)->push_back(
        {ballast::from_abi(row->kernel), row->count, row->total_ns, row->min_ns});
  };
  check(plugin().profile->profile_drain(device()->handle(), append, &rows));
  return rows;
}

namespace {

// An op has few more outputs than inputs, or, as split, one for each number of a list.
size_t most_outputs(const std::vector<TensorType>& inputs, const Attrs& attrs) {
  size_t count = inputs.size() + kSpareOutputs;
  for (const auto& [name, value] : attrs) {
    if (const auto* list = std::get_if<std::vector<int64_t>>(&value)) count += list->size();
  }
  return count;
}

}  // namespace

std::vector<TensorType> infer(const std::string& name, const std::vector<TensorType>& inputs,
                              const Attrs& attrs) {
  Process& state = process();
  std::string key = op_key(name, inputs, attrs);
  {
    std::lock_guard lock(state.mutex);
    auto found = state.inferred.find(key);
    if (found != state.inferred.end()) return found->second;
  }
  OpCall call(name, inputs, attrs);
  std::vector<ballast_tensor_desc> descs(most_outputs(inputs, attrs),
                                         BALLAST_INIT(ballast_tensor_desc));
  uint64_t count = 0;
  check(plugin().op->op_infer(call.get(), descs.data(), descs.size(), &count));
  std::vector<TensorType> types;
  for (uint64_t i = 0; i < count; ++i) types.push_back(ballast::from_abi(descs[i]));
  std::lock_guard lock(state.mutex);
  state.inferred.emplace(std::move(key), types);
  return types;
}

std::vector<std::string> plugin_ops() {
  uint64_t count = 0;
  check(plugin().op->op_count(&count));
  std::vector<std::string> names;
  for (uint64_t i = 0; i < count; ++i) {
    ballast_str name{};
    check(plugin().op->op_name(i, &name));
    names.push_back(ballast::from_abi(name));
  }
  return names;
}

}  // namespace ballast
