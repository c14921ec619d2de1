// The driver's memory that a pool cuts into blocks.
//
// A CPU's is a buffer, whose parts kernels take as sub-buffers. A GPU's is shared virtual memory
// (SVM) where there is such: kernels take addresses, so a block needs no object of the driver.
// NVIDIA's driver (580.159) crashes once sub-buffers of one buffer overlap, as those of a block and
// of its views do, and takes 20 us to make one and 65 to release it.
#pragma once

#include "device/cl.h"

#include <cstdint>
#include <memory>

namespace ballast::device {

struct SharedFree {
  cl_context context = nullptr;
  // Commands that use it must have ended.
  void operator()(char* memory) const { clSVMFree(context, memory); }
};
using SharedMemory = std::unique_ptr<char, SharedFree>;

// One of the two, or none where the bytes cannot be had.
struct DriverMemory {
  MemHandle buffer;
  SharedMemory shared;
  explicit operator bool() const { return buffer || shared; }
};

// Whether the device's memory is SVM: as BALLAST_SVM says (on, off), else that of GPUs which have
// coarse-grained SVM.
bool is_memory_shared(cl_device_id device);

// Memory of `size` bytes of the context's device. Throws what fails for other reasons than a lack
// of memory. A CPU's buffers lie in huge pages where Linux grants them: with pages of 4 KiB a walk
// across rows finds few of them in the TLB.
DriverMemory make_region(cl_context context, cl_device_id device, uint64_t size);

// Where the buffer lies, if it was made in host memory; else 0.
uint64_t host_address(cl_mem mem);

}  // namespace ballast::device
