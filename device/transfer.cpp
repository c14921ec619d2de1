#include "device/transfer.h"

namespace ballast::device {
namespace {

cl_int copy_shared(cl_command_queue queue, void* target, const void* source, uint64_t size,
                   cl_event* event) {
  return clEnqueueSVMMemcpy(queue, CL_FALSE, target, source, size, 0, nullptr, event);
}

}  // namespace

cl_int enqueue_write(cl_command_queue queue, const Place& target, const void* source, uint64_t size,
                     cl_event* event) {
  if (target.shared() != nullptr) return copy_shared(queue, target.shared(), source, size, event);
  return clEnqueueWriteBuffer(queue, target.buffer.mem(), CL_FALSE, target.offset, size, source, 0,
                              nullptr, event);
}

cl_int enqueue_read(cl_command_queue queue, void* target, const Place& source, uint64_t size,
                    cl_event* event) {
  if (source.shared() != nullptr) return copy_shared(queue, target, source.shared(), size, event);
  return clEnqueueReadBuffer(queue, source.buffer.mem(), CL_FALSE, source.offset, size, target, 0,
                             nullptr, event);
}

cl_int enqueue_copy(cl_command_queue queue, const Place& target, const Place& source, uint64_t size,
                    cl_event* event) {
  if (target.shared() != nullptr) {
    return copy_shared(queue, target.shared(), source.shared(), size, event);
  }
  return clEnqueueCopyBuffer(queue, source.buffer.mem(), target.buffer.mem(), source.offset,
                             target.offset, size, 0, nullptr, event);
}

cl_int enqueue_fill(cl_command_queue queue, const Place& target, const void* pattern,
                    uint64_t pattern_size, uint64_t size, cl_event* event) {
  if (target.shared() != nullptr) {
    return clEnqueueSVMMemFill(queue, target.shared(), pattern, pattern_size, size, 0, nullptr,
                               event);
  }
  return clEnqueueFillBuffer(queue, target.buffer.mem(), pattern, pattern_size, target.offset, size,
                             0, nullptr, event);
}

}  // namespace ballast::device
