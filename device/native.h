// cl_khr_command_buffer: one finalized recording of launches and copies. The extension changed its
// copy call in version 0.9.5; this hides it.
//
// Owned by a command list; not thread-safe. Releasing one while it runs is not safe everywhere:
// the owner waits first.
#pragma once

#include "device/kernel.h"

#include <memory>

namespace ballast::device {

class NativeRecorder {
 public:
  // Throws kUnimplemented where the device lacks the extension.
  explicit NativeRecorder(Device& device);
  ~NativeRecorder();
  NativeRecorder(const NativeRecorder&) = delete;

  // A recording is made for queues like `queue`; commands run in order.
  class Recording {
   public:
    Recording(const NativeRecorder& recorder, cl_command_queue queue);
    ~Recording();
    Recording(const Recording&) = delete;
    // With the kernel's arguments as they are now.
    void add_launch(const Kernel& kernel, const Geometry& geometry);
    void add_copy(const Buffer& target, const Buffer& source, uint64_t size);
    void finalize();
    cl_int enqueue(cl_command_queue queue, cl_event* event) const;

   private:
    const NativeRecorder& recorder_;
    cl_command_buffer_khr handle_ = nullptr;
    cl_sync_point_khr last_ = 0;
    bool has_last_ = false;
  };

 private:
  struct Calls;
  std::unique_ptr<Calls> calls_;
};

}  // namespace ballast::device
