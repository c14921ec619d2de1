#include "device/select.h"

#include "device/pocl_workers.h"
#include "device/region.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <string_view>

namespace ballast::device {
namespace {

// Not in the 2023 headers; the value is in the extension's text.
constexpr cl_device_info kCommandBufferCapabilities = 0x12A9;
constexpr uint64_t kLeastAlignment = 64;

bool has_extension(cl_device_id id, std::string_view name) {
  const std::string all = " " + device_text(id, CL_DEVICE_EXTENSIONS) + " ";
  return all.find(" " + std::string(name) + " ") != std::string::npos;
}

// Usable here means that one recording may be enqueued again while it runs.
bool has_command_buffer(cl_device_id id) {
  if (!has_extension(id, "cl_khr_command_buffer")) return false;
  cl_bitfield capabilities = 0;
  const cl_int code =
      clGetDeviceInfo(id, kCommandBufferCapabilities, sizeof(capabilities), &capabilities, nullptr);
  return code == CL_SUCCESS && (capabilities & CL_COMMAND_BUFFER_CAPABILITY_SIMULTANEOUS_USE_KHR);
}

DeviceInfo describe(cl_platform_id platform, cl_device_id id, uint64_t ordinal) {
  DeviceInfo info;
  info.name = device_text(id, CL_DEVICE_NAME);
  info.platform = platform_text(platform, CL_PLATFORM_NAME);
  info.driver = device_text(id, CL_DRIVER_VERSION);
  info.ordinal = ordinal;
  const auto type = device_value<cl_device_type>(id, CL_DEVICE_TYPE);
  info.device_class = (type & CL_DEVICE_TYPE_GPU) != 0 ? DeviceClass::kGpu : DeviceClass::kCpu;
  info.compute_units = device_value<cl_uint>(id, CL_DEVICE_MAX_COMPUTE_UNITS);
  info.memory_bytes = device_value<cl_ulong>(id, CL_DEVICE_GLOBAL_MEM_SIZE);
  info.buffer_alignment = std::max<uint64_t>(
      device_value<cl_uint>(id, CL_DEVICE_MEM_BASE_ADDR_ALIGN) / 8, kLeastAlignment);
  // Their copies are of buffers.
  info.has_command_buffer = has_command_buffer(id) && !is_memory_shared(id);
  info.is_host_unified = device_value<cl_bool>(id, CL_DEVICE_HOST_UNIFIED_MEMORY) != 0;
  return info;
}

bool is_usable(cl_device_id id) {
  const auto type = device_value<cl_device_type>(id, CL_DEVICE_TYPE);
  return (type & (CL_DEVICE_TYPE_CPU | CL_DEVICE_TYPE_GPU)) != 0 &&
         device_value<cl_bool>(id, CL_DEVICE_AVAILABLE) != 0 &&
         device_value<cl_bool>(id, CL_DEVICE_COMPILER_AVAILABLE) != 0;
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

bool matches(const DeviceInfo& info, const std::string& wanted) {
  if (wanted == "pocl") return lower(info.platform) == "portable computing language";
  if (!wanted.empty() && wanted.find_first_not_of("0123456789") == std::string::npos) {
    return std::to_string(info.ordinal) == wanted;
  }
  return lower(info.platform).find(wanted) != std::string::npos ||
         lower(info.name).find(wanted) != std::string::npos;
}

std::string list_of(const std::vector<FoundDevice>& devices) {
  std::string text;
  for (const FoundDevice& device : devices) {
    text +=
        fmt::format("\n  {}: {} ({})", device.info.ordinal, device.info.name, device.info.platform);
  }
  return text;
}

}  // namespace

std::vector<FoundDevice> find_devices() {
  check_process();
  keep_pocl_workers_apart();
  std::vector<FoundDevice> found;
  cl_uint platform_count = 0;
  // Fails where no platform is installed, which is no error here.
  if (clGetPlatformIDs(0, nullptr, &platform_count) != CL_SUCCESS) return found;
  std::vector<cl_platform_id> platforms(platform_count);
  if (platform_count == 0) return found;
  cl_check(clGetPlatformIDs(platform_count, platforms.data(), nullptr), "clGetPlatformIDs");
  for (cl_platform_id platform : platforms) {
    cl_uint count = 0;
    if (clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &count) != CL_SUCCESS) continue;
    std::vector<cl_device_id> ids(count);
    if (count == 0) continue;
    cl_check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, count, ids.data(), nullptr),
             "clGetDeviceIDs");
    for (cl_device_id id : ids) {
      if (is_usable(id)) found.push_back({platform, id, describe(platform, id, found.size())});
    }
  }
  return found;
}

std::vector<DeviceInfo> list_devices() {
  std::vector<DeviceInfo> infos;
  for (FoundDevice& device : find_devices()) infos.push_back(std::move(device.info));
  return infos;
}

FoundDevice select_device(const std::string& selector) {
  const char* environment = std::getenv("BALLAST_DEVICE");
  const bool is_from_environment = selector.empty() && environment != nullptr;
  const std::string wanted = is_from_environment ? environment : selector;
  std::vector<FoundDevice> devices = find_devices();
  if (devices.empty()) {
    fail(
        Code::kNotFound,
        "[device_open] no OpenCL device: no platform is installed, or none that has a compiler. On "
        "Debian: apt install pocl-opencl-icd (and see OCL_ICD_VENDORS, if it is set)");
  }
  // GPUs before CPUs, else as the platforms list them.
  std::stable_sort(devices.begin(), devices.end(), [](const FoundDevice& a, const FoundDevice& b) {
    return a.info.device_class > b.info.device_class;
  });
  for (const FoundDevice& device : devices) {
    if (wanted.empty() || matches(device.info, lower(wanted))) return device;
  }
  fail(Code::kNotFound, "[device_open] no device matches \"{}\"{}; there is:{}", wanted,
       is_from_environment ? " (of BALLAST_DEVICE)" : "", list_of(devices));
}

}  // namespace ballast::device
