#include "device/region.h"

#include <cstdlib>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace ballast::device {
namespace {

MemHandle checked(cl_mem mem, cl_int code) {
  MemHandle handle(mem);
  if (code == CL_MEM_OBJECT_ALLOCATION_FAILURE || code == CL_OUT_OF_RESOURCES ||
      code == CL_OUT_OF_HOST_MEMORY || code == CL_INVALID_BUFFER_SIZE) {
    return nullptr;
  }
  cl_check(code, "clCreateBuffer");
  return handle;
}

MemHandle make_driver_region(cl_context context, uint64_t size) {
  cl_int code = CL_SUCCESS;
  cl_mem mem = clCreateBuffer(context, CL_MEM_READ_WRITE, size, nullptr, &code);
  return checked(mem, code);
}

#ifdef __linux__
constexpr uint64_t kHugePage = 2ull << 20;

MemHandle make_huge_region(cl_context context, uint64_t size) {
  void* memory = nullptr;
  if (posix_memalign(&memory, kHugePage, size) != 0) return nullptr;
  // Only asks: where huge pages are switched off, these stay small.
  madvise(memory, size, MADV_HUGEPAGE);
  cl_int code = CL_SUCCESS;
  cl_mem mem =
      clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, size, memory, &code);
  if (mem == nullptr) {
    std::free(memory);
    return checked(mem, code);
  }
  // Commands in flight keep the buffer, and so its memory, beyond the pool.
  MemHandle handle(mem);
  code = clSetMemObjectDestructorCallback(
      mem, [](cl_mem, void* released) { std::free(released); }, memory);
  if (code != CL_SUCCESS) {
    handle.reset();
    std::free(memory);
  }
  cl_check(code, "clSetMemObjectDestructorCallback");
  return handle;
}
#endif

}  // namespace

MemHandle make_region(cl_context context, cl_device_id device, uint64_t size) {
#ifdef __linux__
  const bool is_cpu = device_value<cl_device_type>(device, CL_DEVICE_TYPE) == CL_DEVICE_TYPE_CPU;
  if (is_cpu && size >= kHugePage) return make_huge_region(context, size);
#endif
  return make_driver_region(context, size);
}

}  // namespace ballast::device
