// An in-order queue. Any thread may submit; submissions of one thread keep their order.
//
// Failure is sticky: after a failed command every later call on the stream throws the first error.
#pragma once

#include "device/buffer.h"

#include <memory>
#include <mutex>
#include <string>
#include <string_view>

namespace ballast::device {

class Kernel;

class Stream {
 public:
  explicit Stream(Device& device);  // streams are owned by whoever made them; see make_stream
  ~Stream();                        // waits for its work
  Stream(const Stream&) = delete;

  Device& device() const;
  cl_command_queue queue() const;

  // Enqueues a launch with slot i bound to buffers[i]. Thread-safe: kernel objects are private to
  // the stream (a cache by source and entry) and used under its lock.
  void submit(const Launch& launch, Buffer* const* buffers, size_t buffer_count);
  // Reads `source` before returning (stages it); waits for earlier work only where the staging
  // memory is used up.
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
  // Later work waits for what was submitted to another stream of the device so far.
  void follow(StreamState& earlier);
  void flush();
  void sync();
  // Throws the sticky failure, if any.
  void check() const;

  // For this folder: the part that outlives the stream, and the steps around an enqueue.
  StreamState& state() const;
  const std::shared_ptr<StreamState>& shared_state() const;
  // Throws if nothing may be submitted; tells the buffer that this stream uses it.
  void begin();
  // Throws unless the buffer is of this stream's device; `call` is what uses it.
  void check_device(std::string_view call, const Buffer& buffer) const;
  void use(Buffer& buffer);
  // Checks the enqueue call's result, counts it, takes its event and hands it to the profile under
  // `label` unless that is empty. Call under state().mutex, as the enqueue itself; use() before it.
  void end(cl_int code, const char* call, cl_event event, const std::string& label);

 private:
  void check_range(const char* call, const Buffer& buffer, uint64_t offset, uint64_t size) const;
  void enqueue(Kernel& kernel, const Launch& launch, Buffer* const* buffers);

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

std::shared_ptr<Stream> make_stream(const DevicePtr& device);  // keeps the device alive

}  // namespace ballast::device
