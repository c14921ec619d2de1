// How long the calling thread spends inside of OpenCL. A program that links this has its own entry
// points in front of the driver's, the plugin's calls included: they count, then pass on.
#pragma once

#include <cstdint>

namespace ballast::bench {

// Nanoseconds that the thread has spent in calls that launch kernels or handle their arguments and
// events, since it began.
uint64_t opencl_nanoseconds();

}  // namespace ballast::bench
