#include "device/cl.h"

#include "device/error.h"

#include <pthread.h>

#include <atomic>

namespace ballast::device {
namespace {

std::atomic<bool> in_forked_child{false};

}  // namespace

Code code_of(cl_int code) {
  switch (code) {
    case CL_OUT_OF_HOST_MEMORY:
      return Code::kOutOfHostMemory;
    case CL_MEM_OBJECT_ALLOCATION_FAILURE:
    case CL_OUT_OF_RESOURCES:
      return Code::kOutOfDeviceMemory;
    case CL_DEVICE_NOT_AVAILABLE:
      return Code::kDeviceLost;
    default:
      return Code::kInternal;
  }
}

void cl_check(cl_int code, const char* call) {
  if (code == CL_SUCCESS) return;
  fail(code_of(code), "[{}] {} ({})", call, cl_code_name(code), code);
}

const char* cl_code_name(cl_int code) {
#define BALLAST_CL_NAME(name) \
  case name:                  \
    return #name;
  switch (code) {
    BALLAST_CL_NAME(CL_SUCCESS)
    BALLAST_CL_NAME(CL_DEVICE_NOT_FOUND)
    BALLAST_CL_NAME(CL_DEVICE_NOT_AVAILABLE)
    BALLAST_CL_NAME(CL_COMPILER_NOT_AVAILABLE)
    BALLAST_CL_NAME(CL_MEM_OBJECT_ALLOCATION_FAILURE)
    BALLAST_CL_NAME(CL_OUT_OF_RESOURCES)
    BALLAST_CL_NAME(CL_OUT_OF_HOST_MEMORY)
    BALLAST_CL_NAME(CL_PROFILING_INFO_NOT_AVAILABLE)
    BALLAST_CL_NAME(CL_MEM_COPY_OVERLAP)
    BALLAST_CL_NAME(CL_BUILD_PROGRAM_FAILURE)
    BALLAST_CL_NAME(CL_MISALIGNED_SUB_BUFFER_OFFSET)
    BALLAST_CL_NAME(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST)
    BALLAST_CL_NAME(CL_INVALID_VALUE)
    BALLAST_CL_NAME(CL_INVALID_DEVICE)
    BALLAST_CL_NAME(CL_INVALID_CONTEXT)
    BALLAST_CL_NAME(CL_INVALID_QUEUE_PROPERTIES)
    BALLAST_CL_NAME(CL_INVALID_COMMAND_QUEUE)
    BALLAST_CL_NAME(CL_INVALID_MEM_OBJECT)
    BALLAST_CL_NAME(CL_INVALID_BINARY)
    BALLAST_CL_NAME(CL_INVALID_BUILD_OPTIONS)
    BALLAST_CL_NAME(CL_INVALID_PROGRAM)
    BALLAST_CL_NAME(CL_INVALID_PROGRAM_EXECUTABLE)
    BALLAST_CL_NAME(CL_INVALID_KERNEL_NAME)
    BALLAST_CL_NAME(CL_INVALID_KERNEL)
    BALLAST_CL_NAME(CL_INVALID_ARG_INDEX)
    BALLAST_CL_NAME(CL_INVALID_ARG_VALUE)
    BALLAST_CL_NAME(CL_INVALID_ARG_SIZE)
    BALLAST_CL_NAME(CL_INVALID_KERNEL_ARGS)
    BALLAST_CL_NAME(CL_INVALID_WORK_DIMENSION)
    BALLAST_CL_NAME(CL_INVALID_WORK_GROUP_SIZE)
    BALLAST_CL_NAME(CL_INVALID_WORK_ITEM_SIZE)
    BALLAST_CL_NAME(CL_INVALID_EVENT_WAIT_LIST)
    BALLAST_CL_NAME(CL_INVALID_EVENT)
    BALLAST_CL_NAME(CL_INVALID_OPERATION)
    BALLAST_CL_NAME(CL_INVALID_BUFFER_SIZE)
    BALLAST_CL_NAME(CL_INVALID_GLOBAL_WORK_SIZE)
    BALLAST_CL_NAME(CL_INVALID_PROPERTY)
    BALLAST_CL_NAME(CL_INVALID_COMMAND_BUFFER_KHR)
    BALLAST_CL_NAME(CL_INVALID_SYNC_POINT_WAIT_LIST_KHR)
    BALLAST_CL_NAME(CL_INCOMPATIBLE_COMMAND_QUEUE_KHR)
    default:
      return "OpenCL error";
  }
#undef BALLAST_CL_NAME
}

void check_process() {
  static const int armed = pthread_atfork(nullptr, nullptr, [] { in_forked_child.store(true); });
  if (armed != 0 || in_forked_child.load(std::memory_order_relaxed)) {
    fail(Code::kFailedPrecondition,
         "[device] this process was forked after its parent used a device; OpenCL does not survive "
         "a fork: start the child with exec, or open devices only in the child");
  }
}

std::string device_text(cl_device_id id, cl_device_info what) {
  size_t size = 0;
  cl_check(clGetDeviceInfo(id, what, 0, nullptr, &size), "clGetDeviceInfo");
  std::string text(size, '\0');
  cl_check(clGetDeviceInfo(id, what, size, text.data(), nullptr), "clGetDeviceInfo");
  return text.c_str();
}

std::string platform_text(cl_platform_id id, cl_platform_info what) {
  size_t size = 0;
  cl_check(clGetPlatformInfo(id, what, 0, nullptr, &size), "clGetPlatformInfo");
  std::string text(size, '\0');
  cl_check(clGetPlatformInfo(id, what, size, text.data(), nullptr), "clGetPlatformInfo");
  return text.c_str();
}

cl_int event_status(cl_event event) {
  cl_int status = CL_QUEUED;
  cl_check(
      clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status, nullptr),
      "clGetEventInfo");
  return status;
}

}  // namespace ballast::device
