// Tests whose ops run with the schedules of GPU-class devices, whatever the device is.
#pragma once

#include "frontend/backend/backend.h"

#include <gtest/gtest.h>

namespace ballast::tests {

inline void use_gpu_class() {
  DeviceOptions options;
  options.device_class = BALLAST_CLASS_GPU;
  set_device("", options);
  ASSERT_EQ(device_info().device_class, BALLAST_CLASS_GPU);
}

// Puts it around the cases of a suite.
template <class Base>
class OnGpuClass : public Base {
 public:
  static void SetUpTestSuite() { use_gpu_class(); }
  static void TearDownTestSuite() { set_device(""); }
};

}  // namespace ballast::tests
