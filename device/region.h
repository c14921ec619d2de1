// The driver allocations that a pool cuts into blocks.
#pragma once

#include "device/cl.h"

#include <cstdint>

namespace ballast::device {

// A buffer of `size` bytes of the context's device, or nullptr where they cannot be had. Throws
// what else fails. A CPU's buffers lie in huge pages where Linux grants them: with pages of 4 KiB
// a walk across rows finds few of them in the TLB.
MemHandle make_region(cl_context context, cl_device_id device, uint64_t size);

// Where the buffer lies, if it was made in host memory; else 0.
uint64_t host_address(cl_mem mem);

}  // namespace ballast::device
