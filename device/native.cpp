#include "device/native.h"

#include <string>
#include <vector>

namespace ballast::device {
namespace {

// Since 0.9.5 recording calls take a properties list (which launches always took).
using CopyWithProperties = cl_int(CL_API_CALL*)(cl_command_buffer_khr, cl_command_queue,
                                                const cl_properties*, cl_mem, cl_mem, size_t,
                                                size_t, size_t, cl_uint, const cl_sync_point_khr*,
                                                cl_sync_point_khr*, void*);

cl_version extension_version(cl_device_id id) {
  size_t size = 0;
  cl_check(clGetDeviceInfo(id, CL_DEVICE_EXTENSIONS_WITH_VERSION, 0, nullptr, &size),
           "clGetDeviceInfo");
  std::vector<cl_name_version> all(size / sizeof(cl_name_version));
  cl_check(clGetDeviceInfo(id, CL_DEVICE_EXTENSIONS_WITH_VERSION, size, all.data(), nullptr),
           "clGetDeviceInfo");
  for (const cl_name_version& extension : all) {
    if (std::string(extension.name) == "cl_khr_command_buffer") return extension.version;
  }
  return 0;
}

}  // namespace

struct NativeRecorder::Calls {
  clCreateCommandBufferKHR_fn create = nullptr;
  clReleaseCommandBufferKHR_fn release = nullptr;
  clFinalizeCommandBufferKHR_fn finalize = nullptr;
  clEnqueueCommandBufferKHR_fn enqueue = nullptr;
  clCommandNDRangeKernelKHR_fn launch = nullptr;
  clCommandCopyBufferKHR_fn copy = nullptr;
  CopyWithProperties copy_with_properties = nullptr;  // one of the two
};

NativeRecorder::NativeRecorder(Device& device) : calls_(new Calls) {
  if (!device.info().has_command_buffer) {
    fail(Code::kUnimplemented, "[replay] {} has no cl_khr_command_buffer; use the list replay",
         device.info().name);
  }
  const auto platform = device_value<cl_platform_id>(device.id(), CL_DEVICE_PLATFORM);
  auto find = [&](auto& call, const char* name) {
    void* address = clGetExtensionFunctionAddressForPlatform(platform, name);
    if (address == nullptr) fail(Code::kUnimplemented, "[replay] the driver lacks {}", name);
    call = reinterpret_cast<std::remove_reference_t<decltype(call)>>(address);
  };
  find(calls_->create, "clCreateCommandBufferKHR");
  find(calls_->release, "clReleaseCommandBufferKHR");
  find(calls_->finalize, "clFinalizeCommandBufferKHR");
  find(calls_->enqueue, "clEnqueueCommandBufferKHR");
  find(calls_->launch, "clCommandNDRangeKernelKHR");
  if (extension_version(device.id()) < CL_MAKE_VERSION(0, 9, 5)) {
    find(calls_->copy, "clCommandCopyBufferKHR");
  } else {
    find(calls_->copy_with_properties, "clCommandCopyBufferKHR");
  }
}

NativeRecorder::~NativeRecorder() = default;

NativeRecorder::Recording::Recording(const NativeRecorder& recorder, cl_command_queue queue)
    : recorder_(recorder) {
  const cl_command_buffer_properties_khr properties[] = {CL_COMMAND_BUFFER_FLAGS_KHR,
                                                         CL_COMMAND_BUFFER_SIMULTANEOUS_USE_KHR, 0};
  cl_int code = CL_SUCCESS;
  handle_ = recorder_.calls_->create(1, &queue, properties, &code);
  cl_check(code, "clCreateCommandBufferKHR");
}

NativeRecorder::Recording::~Recording() { recorder_.calls_->release(handle_); }

// Each command waits for the one before: drivers differ in what order they keep without it.
void NativeRecorder::Recording::add_launch(const Kernel& kernel, const Geometry& geometry) {
  cl_sync_point_khr point = 0;
  cl_check(recorder_.calls_->launch(handle_, nullptr, nullptr, kernel.get(), geometry.dimensions,
                                    nullptr, geometry.global, geometry.local, has_last_ ? 1 : 0,
                                    has_last_ ? &last_ : nullptr, &point, nullptr),
           "clCommandNDRangeKernelKHR");
  last_ = point;
  has_last_ = true;
}

void NativeRecorder::Recording::add_copy(const Buffer& target, const Buffer& source,
                                         uint64_t size) {
  cl_sync_point_khr point = 0;
  const cl_uint waits = has_last_ ? 1 : 0;
  const cl_sync_point_khr* wait = has_last_ ? &last_ : nullptr;
  const Calls& calls = *recorder_.calls_;
  cl_check(calls.copy != nullptr
               ? calls.copy(handle_, nullptr, source.mem(), target.mem(), 0, 0, size, waits, wait,
                            &point, nullptr)
               : calls.copy_with_properties(handle_, nullptr, nullptr, source.mem(), target.mem(),
                                            0, 0, size, waits, wait, &point, nullptr),
           "clCommandCopyBufferKHR");
  last_ = point;
  has_last_ = true;
}

void NativeRecorder::Recording::finalize() {
  cl_check(recorder_.calls_->finalize(handle_), "clFinalizeCommandBufferKHR");
}

cl_int NativeRecorder::Recording::enqueue(cl_command_queue queue, cl_event* event) const {
  return recorder_.calls_->enqueue(1, &queue, handle_, 0, nullptr, event);
}

}  // namespace ballast::device
