#include "kernels/plan/tune.h"

#include "device/buffer.h"
#include "device/disk_cache.h"
#include "device/stream.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <limits>
#include <map>
#include <mutex>
#include <optional>

namespace ballast::kernels {
namespace {

using Clock = std::chrono::steady_clock;

thread_local device::DevicePtr tuning_device;

bool is_enabled() {
  const char* value = std::getenv("BALLAST_TUNE");
  return value != nullptr && std::string(value) == "1";
}

// A plan with buffers to run on; their contents do not matter.
class Candidate {
 public:
  Candidate(const device::DevicePtr& device, Plan plan, const std::vector<uint64_t>& slot_bytes)
      : stream_(device->default_stream()), plan_(std::move(plan)) {
    for (uint64_t bytes : slot_bytes) buffers_.push_back(device::Buffer::create(device, bytes));
    if (plan_.workspace_bytes > 0) {
      buffers_.push_back(device::Buffer::create(device, plan_.workspace_bytes));
    }
    // Zeros: numbers that slow an operation down would count otherwise.
    constexpr uint32_t kZero = 0;
    for (const device::BufferPtr& buffer : buffers_) {
      slots_.push_back(buffer.get());
      const uint64_t whole = buffer->size() / sizeof(kZero) * sizeof(kZero);
      if (whole > 0) stream_.fill(*buffer, 0, whole, &kZero, sizeof(kZero));
    }
    for (const Region& region : plan_.regions) {
      buffers_.push_back(
          device::Buffer::view(buffers_[slot_bytes.size()], region.offset, region.bytes));
      slots_.push_back(buffers_.back().get());
    }
    run(1);  // builds the programs
  }

  // Seconds of one run, of `count` after each other.
  double run(int count) {
    stream_.sync();
    const Clock::time_point start = Clock::now();
    for (int i = 0; i < count; ++i) {
      for (const device::Launch& launch : plan_.launches) {
        stream_.submit(launch, slots_.data(), slots_.size());
      }
    }
    stream_.sync();
    return std::chrono::duration<double>(Clock::now() - start).count() / count;
  }

 private:
  device::Stream& stream_;
  Plan plan_;
  std::vector<device::BufferPtr> buffers_;
  std::vector<device::Buffer*> slots_;
};

size_t measured_choice(const device::DevicePtr& device, size_t standard,
                       const std::vector<std::function<Plan()>>& plans,
                       const std::vector<uint64_t>& slot_bytes) {
  constexpr double kRoundSeconds = 1e-3;
  std::vector<Candidate> candidates;
  candidates.reserve(plans.size());
  for (const auto& plan : plans) candidates.emplace_back(device, plan(), slot_bytes);
  const double once = candidates[standard].run(2);
  const int count = std::clamp(static_cast<int>(kRoundSeconds / once), 1, 200);
  return fastest_candidate(candidates.size(), standard,
                           [&](size_t i) { return candidates[i].run(count); });
}

std::optional<size_t> parse(const std::optional<std::string>& text, size_t count) {
  if (!text || text->empty() || text->find_first_not_of("0123456789") != std::string::npos ||
      text->size() > 4) {
    return std::nullopt;
  }
  const size_t number = std::strtoul(text->c_str(), nullptr, 10);
  return number < count ? std::optional(number) : std::nullopt;
}

}  // namespace

TuningScope::TuningScope(device::DevicePtr device)
    : before_(std::exchange(tuning_device, is_enabled() ? std::move(device) : nullptr)) {}

TuningScope::~TuningScope() { tuning_device = before_; }

size_t tuned_choice(const std::string& problem, size_t standard,
                    const std::vector<std::function<Plan()>>& candidates,
                    const std::vector<uint64_t>& slot_bytes) {
  const device::DevicePtr device = tuning_device;
  if (!device || candidates.size() < 2) return standard;
  const device::DeviceInfo& info = device->info();
  const std::string key = fmt::format("tune 1\n{}\n{}\n{}\n{} units\n{}", info.name, info.platform,
                                      info.driver, info.compute_units, problem);
  // One problem is measured at a time: two would disturb each other.
  static std::mutex mutex;
  static std::map<std::string, size_t> known;
  std::lock_guard<std::mutex> lock(mutex);
  const auto found = known.find(key);
  if (found != known.end()) return found->second;
  const XXH128_hash_t hash = XXH3_128bits(key.data(), key.size());
  const std::string file = fmt::format("{:016x}{:016x}.tune", hash.high64, hash.low64);
  const device::DiskCache disk = device::DiskCache::from_environment();
  std::optional<size_t> choice = parse(disk.load(file), candidates.size());
  if (!choice) {
    choice = measured_choice(device, standard, candidates, slot_bytes);
    disk.store(file, std::to_string(*choice));
  }
  return known[key] = *choice;
}

// Rounds over all candidates in turn, so that whatever else the machine does meets all of them.
size_t fastest_candidate(size_t count, size_t standard,
                         const std::function<double(size_t candidate)>& seconds) {
  constexpr int kRounds = 7;
  constexpr double kNoise = 0.03;
  std::vector<double> best(count, std::numeric_limits<double>::infinity());
  for (int round = 0; round < kRounds; ++round) {
    for (size_t i = 0; i < count; ++i) best[i] = std::min(best[i], seconds(i));
  }
  const size_t winner = std::min_element(best.begin(), best.end()) - best.begin();
  return best[winner] < (1 - kNoise) * best[standard] ? winner : standard;
}

}  // namespace ballast::kernels
