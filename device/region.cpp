#include "device/region.h"

#include <cstdlib>
#include <memory>
#include <string_view>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace ballast::device {
namespace {

bool is_cpu(cl_device_id device) {
  return device_value<cl_device_type>(device, CL_DEVICE_TYPE) == CL_DEVICE_TYPE_CPU;
}

// `memory`: what the buffer lies in, or nullptr where the driver finds some.
MemHandle make_buffer(cl_context context, uint64_t size, void* memory) {
  const cl_mem_flags flags = memory == nullptr ? 0 : CL_MEM_USE_HOST_PTR;
  cl_int code = CL_SUCCESS;
  MemHandle handle(clCreateBuffer(context, CL_MEM_READ_WRITE | flags, size, memory, &code));
  if (code == CL_MEM_OBJECT_ALLOCATION_FAILURE || code == CL_OUT_OF_RESOURCES ||
      code == CL_OUT_OF_HOST_MEMORY || code == CL_INVALID_BUFFER_SIZE) {
    return nullptr;
  }
  cl_check(code, "clCreateBuffer");
  return handle;
}

#ifdef __linux__
constexpr uint64_t kHugePage = 2ull << 20;

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};

MemHandle make_huge_region(cl_context context, uint64_t size) {
  void* aligned = nullptr;
  if (posix_memalign(&aligned, kHugePage, size) != 0) return nullptr;
  std::unique_ptr<void, Free> memory(aligned);
  // Only asks: where huge pages are switched off, these stay small.
  madvise(aligned, size, MADV_HUGEPAGE);
  MemHandle handle = make_buffer(context, size, aligned);
  if (!handle) return nullptr;
  // Commands in flight keep the buffer, and so its memory, beyond the pool.
  cl_check(clSetMemObjectDestructorCallback(
               handle.get(), [](cl_mem, void* released) { Free()(released); }, aligned),
           "clSetMemObjectDestructorCallback");
  static_cast<void>(memory.release());
  return handle;
}
#endif

}  // namespace

uint64_t host_address(cl_mem mem) {
  void* memory = nullptr;
  cl_check(clGetMemObjectInfo(mem, CL_MEM_HOST_PTR, sizeof(memory), &memory, nullptr),
           "clGetMemObjectInfo");
  return reinterpret_cast<uint64_t>(memory);
}

bool is_memory_shared(cl_device_id device) {
  cl_device_svm_capabilities has = 0;
  // Fails on devices older than SVM.
  const cl_int code =
      clGetDeviceInfo(device, CL_DEVICE_SVM_CAPABILITIES, sizeof(has), &has, nullptr);
  if (code != CL_SUCCESS || (has & CL_DEVICE_SVM_COARSE_GRAIN_BUFFER) == 0) return false;
  if (const char* value = std::getenv("BALLAST_SVM")) return std::string_view(value) == "on";
  return !is_cpu(device);
}

DriverMemory make_region(cl_context context, cl_device_id device, uint64_t size) {
  if (is_memory_shared(device)) {
    void* const memory = clSVMAlloc(context, CL_MEM_READ_WRITE, size, 0);
    return {nullptr, SharedMemory(static_cast<char*>(memory), SharedFree{context})};
  }
#ifdef __linux__
  if (is_cpu(device) && size >= kHugePage) return {make_huge_region(context, size), nullptr};
#endif
  return {make_buffer(context, size, nullptr), nullptr};
}

}  // namespace ballast::device
