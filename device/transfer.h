// Commands that move bytes of buffers, whatever memory these are of (device/region.h). Ranges are
// checked before. Each enqueues one command, gives its event and the driver's code.
#pragma once

#include "device/buffer.h"

#include <cstdint>

namespace ballast::device {

// A place in a buffer, in bytes.
struct Place {
  const Buffer& buffer;
  uint64_t offset = 0;

  char* shared() const { return buffer.shared() == nullptr ? nullptr : buffer.shared() + offset; }
};

// `source` is read, and `target` written, until the event.
cl_int enqueue_write(cl_command_queue queue, const Place& target, const void* source, uint64_t size,
                     cl_event* event);
cl_int enqueue_read(cl_command_queue queue, void* target, const Place& source, uint64_t size,
                    cl_event* event);
cl_int enqueue_copy(cl_command_queue queue, const Place& target, const Place& source, uint64_t size,
                    cl_event* event);
cl_int enqueue_fill(cl_command_queue queue, const Place& target, const void* pattern,
                    uint64_t pattern_size, uint64_t size, cl_event* event);

}  // namespace ballast::device
