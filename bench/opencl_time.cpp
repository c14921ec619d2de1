#include "bench/opencl_time.h"

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <dlfcn.h>

#include <chrono>

namespace {

thread_local uint64_t spent = 0;

// The entry point that the program would have without ours.
template <class F>
F* real(const char* name) {
  return reinterpret_cast<F*>(dlsym(RTLD_NEXT, name));
}

template <class F, class... Args>
cl_int timed(F* call, Args... args) {
  const auto start = std::chrono::steady_clock::now();
  const cl_int status = call(args...);
  const std::chrono::nanoseconds taken = std::chrono::steady_clock::now() - start;
  spent += static_cast<uint64_t>(taken.count());
  return status;
}

}  // namespace

uint64_t ballast::bench::opencl_nanoseconds() { return spent; }

#pragma GCC visibility push(default)
extern "C" {

cl_int clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
                              const size_t* offset, const size_t* global, const size_t* local,
                              cl_uint wait_count, const cl_event* waits, cl_event* event) {
  static auto* const call = real<decltype(clEnqueueNDRangeKernel)>("clEnqueueNDRangeKernel");
  return timed(call, queue, kernel, dimensions, offset, global, local, wait_count, waits, event);
}

cl_int clSetKernelArg(cl_kernel kernel, cl_uint index, size_t size, const void* value) {
  static auto* const call = real<decltype(clSetKernelArg)>("clSetKernelArg");
  return timed(call, kernel, index, size, value);
}

cl_int clGetEventInfo(cl_event event, cl_event_info what, size_t size, void* value,
                      size_t* needed) {
  static auto* const call = real<decltype(clGetEventInfo)>("clGetEventInfo");
  return timed(call, event, what, size, value, needed);
}

cl_int clReleaseEvent(cl_event event) {
  static auto* const call = real<decltype(clReleaseEvent)>("clReleaseEvent");
  return timed(call, event);
}
}
#pragma GCC visibility pop
