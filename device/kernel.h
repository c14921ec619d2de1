// A kernel object that remembers its arguments, so that only changed ones are set again.
//
// Owned by one stream or one recording; not thread-safe (an OpenCL kernel's arguments are not).
#pragma once

#include "device/buffer.h"
#include "device/packed_scalars.h"

#include <optional>
#include <vector>

namespace ballast::device {

// A launch's size as OpenCL takes it: without trailing dimensions of one work-item.
struct Geometry {
  cl_uint dimensions = 1;
  size_t global[3] = {1, 1, 1};
  size_t local[3] = {1, 1, 1};
};
// Throws kInvalidArgument for an empty launch or one that work-groups do not divide.
Geometry geometry_of(const Launch& launch);

class Kernel {
 public:
  // By parameters, as the kernel's text has them.
  explicit Kernel(KernelHandle handle) : handle_(std::move(handle)) {}
  // By arguments of launches like this one.
  Kernel(KernelHandle handle, const Launch& launch) : handle_(std::move(handle)), where_(launch) {}

  cl_kernel get() const { return handle_.get(); }
  void set_buffer(cl_uint argument, const Buffer& buffer);
  void set_scalar(cl_uint argument, const void* value, size_t size);
  // Scalars and local memory of `launch`; its buffers are set one by one.
  void set_values(const Launch& launch);

 private:
  // What an argument holds: a buffer's serial, a scalar's bits or a size of local memory.
  struct Held {
    uint64_t value = 0;
    bool is_set = false;
  };
  bool holds(cl_uint index, uint64_t value);
  cl_uint index_of(cl_uint argument) const { return where_ ? where_->indices[argument] : argument; }
  void set(cl_uint index, const void* value, size_t size);
  void check_set(cl_uint index, cl_int code, const char* call);
  void set_packed(const Launch& launch);

  KernelHandle handle_;
  uint64_t values_of_ = 0;  // serial of the launch whose values are set; 0: unknown
  std::optional<PackedArguments> where_;
  std::vector<Held> held_;
  std::vector<uint32_t> lanes_;  // what the packed parameters hold
};

}  // namespace ballast::device
