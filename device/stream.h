// An in-order queue. Any thread may submit; submissions of one thread keep their order.
//
// Failure is sticky: after a failed command every later call on the stream throws the first error.
#pragma once

#include "device/buffer.h"

#include <memory>
#include <mutex>

namespace ballast::device {

class CommandList;

class Stream {
 public:
  explicit Stream(Device& device);  // streams are owned by whoever made them; see make_stream
  ~Stream();                        // waits for its work
  Stream(const Stream&) = delete;

  Device& device() const;
  cl_command_queue queue() const;

  // Enqueues a launch with slot i bound to buffers[i]. Thread-safe: kernel objects are private to
  // the call (a per-stream cache of kernels by source and entry, under the stream's lock).
  void submit(const Launch& launch, Buffer* const* buffers, size_t buffer_count);
  // Reads `source` before returning (stages it).
  void write(Buffer& target, uint64_t offset, const void* source, uint64_t size);
  // Has written `target` when it returns.
  void read(void* target, Buffer& source, uint64_t offset, uint64_t size);
  void copy(Buffer& target, uint64_t target_offset, Buffer& source, uint64_t source_offset,
            uint64_t size);
  void fill(Buffer& target, uint64_t offset, uint64_t size, const void* pattern,
            uint64_t pattern_size);
  // The last command's event after a marker; done when all work so far is done.
  EventHandle marker();
  void wait_for(cl_event event);
  void flush();
  void sync();
  // Throws the sticky failure, if any.
  void check() const;

 private:
  friend class CommandList;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

std::shared_ptr<Stream> make_stream(const DevicePtr& device);  // keeps the device alive

}  // namespace ballast::device
