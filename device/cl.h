// OpenCL for this folder: the headers at one version, owned handles, and checked calls.
#pragma once

#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <CL/cl_ext.h>

#include <memory>
#include <string>
#include <type_traits>

namespace ballast::device {

enum class Code : int;  // device/error.h

// CL_OUT_OF_HOST_MEMORY, CL_MEM_OBJECT_ALLOCATION_FAILURE and CL_OUT_OF_RESOURCES map to the memory
// codes, CL_DEVICE_NOT_AVAILABLE to kDeviceLost, the rest to kInternal.
Code code_of(cl_int code);
// Throws device::Error naming the call and the code: cl_check(clFinish(q), "clFinish").
void cl_check(cl_int code, const char* call);
const char* cl_code_name(cl_int code);

// Throws kFailedPrecondition in a child of fork(): OpenCL drivers do not survive it. The first call
// in a process arms the check; afterwards it is one load.
void check_process();

template <class Handle, cl_int(CL_API_CALL* Release)(Handle)>
struct ClRelease {
  void operator()(Handle handle) const { Release(handle); }
};
template <class Handle, cl_int(CL_API_CALL* Release)(Handle)>
using ClOwned = std::unique_ptr<std::remove_pointer_t<Handle>, ClRelease<Handle, Release>>;

using KernelHandle = ClOwned<cl_kernel, clReleaseKernel>;
using ProgramHandle = ClOwned<cl_program, clReleaseProgram>;
using MemHandle = ClOwned<cl_mem, clReleaseMemObject>;
using EventHandle = ClOwned<cl_event, clReleaseEvent>;
using QueueHandle = ClOwned<cl_command_queue, clReleaseCommandQueue>;
using ContextHandle = ClOwned<cl_context, clReleaseContext>;

// Properties of a device: by value, or as text without the trailing NUL.
template <class T>
T device_value(cl_device_id id, cl_device_info what) {
  T value{};
  cl_check(clGetDeviceInfo(id, what, sizeof(value), &value, nullptr), "clGetDeviceInfo");
  return value;
}
std::string device_text(cl_device_id id, cl_device_info what);
std::string platform_text(cl_platform_id id, cl_platform_info what);

// CL_COMPLETE, CL_QUEUED, ... or a negative error.
cl_int event_status(cl_event event);

}  // namespace ballast::device
