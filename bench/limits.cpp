#include "bench/limits.h"

#include "bench/device_limits.h"
#include "bench/roofline.h"

#include <algorithm>

namespace ballast::bench {
namespace {

class HostLimits final : public Limits {
 public:
  explicit HostLimits(int threads) : threads_(threads) {}

  double fma_peak_gflops() override { return bench::fma_peak_gflops(threads_); }

  std::function<double()> stream(uint64_t read, uint64_t written) override {
    return [made = std::make_shared<Stream>(read, written, threads_)] { return made->seconds(); };
  }

  std::string bound_of(uint64_t bytes, double) override {
    return level_of(memory_levels(threads_), bytes).name;
  }

  std::vector<CopySpeed> copies() override {
    constexpr uint64_t kFarBeyondCaches = uint64_t{256} << 20;
    std::vector<CopySpeed> speeds;
    for (const Level& level : memory_levels(threads_)) {
      const uint64_t bytes = std::min(level.bytes / 2, kFarBeyondCaches);
      const double seconds = Stream(bytes / 2, bytes / 2, threads_).seconds();
      speeds.push_back({level.name, 1e-9 * static_cast<double>(bytes) / seconds});
    }
    return speeds;
  }

  bool are_of_host() const override { return true; }

 private:
  const int threads_;
};

}  // namespace

std::unique_ptr<Limits> limits_of(const device::DevicePtr& device, int threads) {
  if (device->info().device_class == device::DeviceClass::kCpu) {
    return std::make_unique<HostLimits>(threads);
  }
  return std::make_unique<DeviceLimits>(device);
}

}  // namespace ballast::bench
