// Host memory that the device copies from: writes are staged here so that they need not wait.
//
// Owned by one stream and used under its lock. Chunks are pinned where the driver pins
// (CL_MEM_ALLOC_HOST_PTR), filled one after the other and reused when their last copy is done.
#pragma once

#include "device/cl.h"

#include <cstdint>
#include <vector>

namespace ballast::device {

class Staging {
 public:
  // `memory_limit`: the device's; all chunks together stay within as much (of 1 MiB and more). 0:
  // none.
  Staging(cl_context context, cl_device_id device, uint64_t memory_limit);
  ~Staging();  // the copies must be done
  Staging(const Staging&) = delete;

  // Room for up to `size` bytes; `out_size` is what there is in one piece. Waits for the oldest
  // copy if all chunks are in use.
  void* take(uint64_t size, uint64_t* out_size);
  // The copy that reads the last take(); the stream is in order, so it stands for earlier ones too.
  void set_reader(EventHandle event);

 private:
  struct Chunk {
    MemHandle mem;
    char* data = nullptr;
    uint64_t used = 0;
    EventHandle reader;
  };
  void next_chunk();

  cl_context context_;
  cl_device_id device_;
  uint64_t chunk_bytes_;
  // For mapping only: on the stream's own queue it would wait for all earlier work.
  QueueHandle queue_;
  std::vector<Chunk> chunks_;
  size_t current_ = 0;
};

}  // namespace ballast::device
