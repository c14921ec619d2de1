// The limits of a GPU, by kernels in OpenCL C that do one thing only: multiply-adds in registers,
// or loads and stores of 16 bytes that neighbouring work-items make side by side.
//
// Owns what it runs; keeps the device. Streams that were made keep their own buffers.
#pragma once

#include "bench/limits.h"
#include "device/buffer.h"

namespace ballast::bench {

class DeviceLimits final : public Limits {
 public:
  explicit DeviceLimits(const device::DevicePtr& device);

  double fma_peak_gflops() override;
  // Timed as ours are: launches one behind the other, waited for once. So a small stream takes what
  // a launch takes.
  std::function<double()> stream(uint64_t read, uint64_t written) override;
  // "launch" where hardly more than a launch is paid for. Which cache it was drivers do not say
  // reliably: NVIDIA's gives the sum of the first levels as the global one.
  std::string bound_of(uint64_t bytes, double seconds) override;
  std::vector<CopySpeed> copies() override;
  bool are_of_host() const override { return false; }

 private:
  uint64_t resident_items() const;

  device::DevicePtr device_;
  device::BufferPtr sums_;
  double launch_seconds_ = 0;
};

}  // namespace ballast::bench
