// Device memory: a counted slice of the pool, or a view of another buffer.
//
// Reference-counted by std::shared_ptr. Destruction returns the block to the pool in stream order
// and never waits.
#pragma once

#include "device/device.h"

#include <cstdint>
#include <memory>

namespace ballast::device {

class Buffer;
using BufferPtr = std::shared_ptr<Buffer>;

class Buffer {
 public:
  static BufferPtr create(const DevicePtr& device, uint64_t size);
  // `offset` a multiple of info().buffer_alignment; keeps parent alive.
  static BufferPtr view(const BufferPtr& parent, uint64_t offset, uint64_t size);
  ~Buffer();
  Buffer(const Buffer&) = delete;

  const DevicePtr& device() const { return device_; }
  uint64_t size() const { return size_; }
  // What a kernel argument takes; covers at least size() bytes (never null, also for size 0).
  cl_mem mem() const { return mem_; }
  // Streams other than the device's default tell the buffer that they used it, so that its memory
  // is not reused before they are done. Called by Stream.
  void note_use(Stream& stream);

 private:
  Buffer() = default;
  DevicePtr device_;
  BufferPtr parent_;
  Block* block_ = nullptr;
  uint64_t size_ = 0;
  cl_mem mem_ = nullptr;
  MemHandle view_;
  struct ForeignUses;
  std::unique_ptr<ForeignUses> foreign_uses_;
};

}  // namespace ballast::device
