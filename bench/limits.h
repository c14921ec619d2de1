// What the device under test can do at most, measured where its kernels run: on a CPU by threads of
// this process (roofline.h), on a GPU by kernels of our own (device_limits.h).
//
// Call from one thread at a time.
#pragma once

#include "device/device.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace ballast::bench {

struct CopySpeed {
  std::string level;  // of memory, or how many bytes are read and written
  double gb_per_s;    // bytes read plus bytes written
};

class Limits {
 public:
  virtual ~Limits() = default;

  // f32 fused multiply-adds in registers, counted as two operations.
  virtual double fma_peak_gflops() = 0;
  // Memory of a given size streamed once. Each call of the result measures the seconds anew.
  virtual std::function<double()> stream(uint64_t read, uint64_t written) = 0;
  // Names what bounds such a stream of `bytes` bytes that takes `seconds`.
  virtual std::string bound_of(uint64_t bytes, double seconds) = 0;
  virtual std::vector<CopySpeed> copies() = 0;
  // Whether kernels run on the host's cores, which threads of another process may still keep.
  virtual bool are_of_host() const = 0;
};

// `threads`: of a device of the CPU class.
std::unique_ptr<Limits> limits_of(const device::DevicePtr& device, int threads);

}  // namespace ballast::bench
