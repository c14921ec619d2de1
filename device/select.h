// Which device is meant: all devices of all platforms in a stable order, and the choice of one.
#pragma once

#include "device/device.h"

#include <string>
#include <vector>

namespace ballast::device {

struct FoundDevice {
  cl_platform_id platform = nullptr;
  cl_device_id id = nullptr;
  DeviceInfo info;
};

std::vector<FoundDevice> find_devices();

// `selector` as in Device::open. Throws kNotFound listing what there is.
FoundDevice select_device(const std::string& selector);

}  // namespace ballast::device
