// OpenCL for this folder: the headers at one version, owned handles, and checked calls.
#pragma once

#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <CL/cl_ext.h>

#include <memory>
#include <type_traits>

namespace ballast::device {

// Throws device::Error naming the call and the code: cl_check(clFinish(q), "clFinish").
// CL_OUT_OF_HOST_MEMORY, CL_MEM_OBJECT_ALLOCATION_FAILURE, CL_OUT_OF_RESOURCES map to the memory codes,
// CL_DEVICE_NOT_AVAILABLE to kDeviceLost, the rest to kInternal.
void cl_check(cl_int code, const char* call);
const char* cl_code_name(cl_int code);

template <class Handle, cl_int (*Release)(Handle)>
struct ClRelease {
  void operator()(Handle handle) const { Release(handle); }
};
template <class Handle, cl_int (*Release)(Handle)>
using ClOwned = std::unique_ptr<std::remove_pointer_t<Handle>, ClRelease<Handle, Release>>;

using KernelHandle = ClOwned<cl_kernel, clReleaseKernel>;
using ProgramHandle = ClOwned<cl_program, clReleaseProgram>;
using MemHandle = ClOwned<cl_mem, clReleaseMemObject>;
using EventHandle = ClOwned<cl_event, clReleaseEvent>;
using QueueHandle = ClOwned<cl_command_queue, clReleaseCommandQueue>;
using ContextHandle = ClOwned<cl_context, clReleaseContext>;

}  // namespace ballast::device
