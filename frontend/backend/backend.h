// The device the process computes on, over the plugin's ABI: memory, one default stream, prepared
// ops, counters. A Device is shared by everything that lives on it; set_device swaps the current
// one and leaves older tensors where they are. Thread-safe.
#pragma once

#include "frontend/backend/op_cache.h"
#include "frontend/backend/spare_buffers.h"
#include "frontend/tensor/types.h"

#include <ballast/ballast.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace ballast {

class Device;

// Device memory, released with its last owner (ordered on the stream; never waits).
class Buffer {
 public:
  Buffer(std::shared_ptr<Device> device, uint64_t bytes);
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  ballast_buffer* handle() const { return handle_; }
  uint64_t bytes() const { return bytes_; }
  const std::shared_ptr<Device>& device() const { return device_; }

 private:
  friend class KeptBuffer;
  friend bool is_shared(const std::shared_ptr<Buffer>& buffer);
  std::shared_ptr<Device> device_;
  ballast_buffer* handle_;
  uint64_t bytes_;
  std::atomic<int64_t> keepers_{0};
};
using BufferPtr = std::shared_ptr<Buffer>;

// Holds a buffer in order to use its memory again once nobody else has it, not for its value.
class KeptBuffer {
 public:
  explicit KeptBuffer(BufferPtr buffer) : buffer_(std::move(buffer)) { ++buffer_->keepers_; }
  ~KeptBuffer() {
    if (buffer_) --buffer_->keepers_;
  }
  KeptBuffer(KeptBuffer&&) = default;
  KeptBuffer& operator=(KeptBuffer&& o) noexcept {
    buffer_.swap(o.buffer_);
    return *this;
  }

  const BufferPtr& get() const { return buffer_; }
  bool is_free() const { return buffer_.use_count() == 1; }

 private:
  BufferPtr buffer_;
};

// Whether the value in it has an owner beside the caller, so that it must not be written over.
inline bool is_shared(const BufferPtr& buffer) { return buffer.use_count() > 1 + buffer->keepers_; }

// A buffer with the same bytes.
BufferPtr copy_of(const Buffer& buffer);

struct DeviceOptions {
  uint64_t memory_limit = 0;  // bytes; 0: none
  int32_t device_class = 0;   // BALLAST_CLASS_*; 0: by the device's type
  bool profile = false;
};

struct DeviceInfo {
  std::string name, platform, driver;
  uint64_t ordinal = 0;
  int32_t device_class = 0;
  uint32_t compute_units = 0;
  uint64_t memory_bytes = 0;
  bool has_command_buffer = false;
  bool is_host_unified = false;
};

struct ProfileRow {
  std::string kernel;
  uint64_t count = 0, total_ns = 0, min_ns = 0;
};

using Counters = ballast_counters;
using MemoryStats = ballast_memory_stats;

class Device : public std::enable_shared_from_this<Device> {
 public:
  Device(const std::string& selector, const DeviceOptions& options);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  ballast_device* handle() const { return handle_; }
  ballast_stream* stream() const { return stream_; }

  BufferPtr allocate(uint64_t bytes);
  void release_spares();  // what the frontend keeps for later, so that statistics are exact
  void upload(const Buffer& target, const void* source, uint64_t bytes);
  void download(void* target, const Buffer& source, uint64_t bytes);
  // Repeats one element over the buffer.
  void fill(const Buffer& target, const std::vector<uint8_t>& element);
  void copy(const Buffer& target, uint64_t target_offset, const Buffer& source,
            uint64_t source_offset, uint64_t bytes);
  // A buffer with one element; equal elements share one, so never write into it.
  BufferPtr scalar(const std::vector<uint8_t>& element);
  void forget_scalars();
  void sync();

  // The op, prepared for inputs of these types.
  const PreparedOp& prepared(const std::string& name, const std::vector<Tensor>& inputs,
                             const Attrs& attrs) {
    return ops_.get(handle_, name, inputs, attrs);
  }

 private:
  friend class Buffer;
  ballast_buffer* take_buffer(uint64_t bytes);
  void give_back(ballast_buffer* buffer, uint64_t bytes);

  ballast_device* handle_ = nullptr;
  ballast_stream* stream_ = nullptr;
  std::mutex mutex_;
  OpCache ops_;
  std::unordered_map<std::string, BufferPtr> scalars_;
  SpareBuffers spares_;
};

// The current device; opened on first use ($BALLAST_DEVICE, else the best usable one).
std::shared_ptr<Device> device();
bool is_current(const Device& device);
// Opens a device and makes it the current one.
void set_device(const std::string& selector, const DeviceOptions& options = {});
std::vector<DeviceInfo> list_devices();

// Of the current device.
DeviceInfo device_info();
Counters counters();
MemoryStats memory_stats();
void reset_peak_memory();
void trim_memory();
void synchronize();
std::vector<ProfileRow> drain_profile();  // needs DeviceOptions::profile

// Output types of an op, asked from the plugin and remembered. Needs no device.
std::vector<TensorType> infer(const std::string& name, const std::vector<TensorType>& inputs,
                              const Attrs& attrs);
// The plugin's op listing.
std::vector<std::string> plugin_ops();

}  // namespace ballast
