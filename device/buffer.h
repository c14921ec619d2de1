// Device memory: a counted slice of the pool, or a view of another buffer.
//
// Reference-counted by std::shared_ptr. Destruction returns the block to the pool in stream order
// and never waits. Any thread may use a buffer.
#pragma once

#include "device/device.h"

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace ballast::device {

class Buffer;
using BufferPtr = std::shared_ptr<Buffer>;
struct StreamState;

class Buffer : public std::enable_shared_from_this<Buffer> {
  struct Private {};  // only create() and view() make buffers

 public:
  explicit Buffer(Private) {}
  static BufferPtr create(const DevicePtr& device, uint64_t size);
  // A new buffer that holds these bytes, whichever stream uses it: others than the default stream,
  // which writes them, start after that.
  static BufferPtr upload(const DevicePtr& device, const void* data, uint64_t size);
  // `offset` a multiple of info().buffer_alignment; keeps parent alive.
  static BufferPtr view(const BufferPtr& parent, uint64_t offset, uint64_t size);
  ~Buffer();
  Buffer(const Buffer&) = delete;

  const DevicePtr& device() const { return device_; }
  uint64_t size() const { return size_; }
  // What a kernel argument takes: an address in shared memory or, where that is nullptr, a memory
  // object, which covers at least size() bytes (never null, also for size 0).
  char* shared() const { return shared_; }
  cl_mem mem() const { return mem_; }
  // Names that: equal serials are the same address, or the same memory object, alive.
  uint64_t serial() const { return serial_; }
  // `size` bytes from `offset` on.
  struct Slice {
    const Buffer& buffer;
    uint64_t offset, size;
  };
  // Whether they have memory in common; views share their parent's.
  static bool overlap(const Slice& a, const Slice& b);
  bool overlaps(const Buffer& other) const {
    return overlap({*this, 0, size_}, {other, 0, other.size_});
  }
  // Where it lies in host memory that the device uses in place; 0 elsewhere.
  uint64_t address() const { return block_->address == 0 ? 0 : block_->address + offset_; }
  // Streams other than the device's default tell the buffer that they are about to use it, so that
  // its memory is not reused before they are done, and that they start after the default stream's
  // work on the block's previous owner, or its upload. Called by Stream.
  void note_use(Stream& stream);

 private:
  DevicePtr device_;
  BufferPtr parent_;
  Block* block_ = nullptr;  // the root's
  uint64_t offset_ = 0;     // from the block's start
  uint64_t size_ = 0;
  char* shared_ = nullptr;
  cl_mem mem_ = nullptr;
  uint64_t serial_ = 0;
  MemHandle view_;  // of a view whose part the block does not keep
  std::mutex uses_mutex_;
  std::vector<std::weak_ptr<StreamState>> foreign_uses_;
};

}  // namespace ballast::device
