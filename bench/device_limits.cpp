#include "bench/device_limits.h"

#include "device/stream.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>

namespace ballast::bench {

using device::Arg;
using device::Buffer;
using device::BufferPtr;
using device::DevicePtr;
using device::Launch;
using device::SourcePtr;

namespace {

constexpr uint64_t kGroup = 256;
// As many work-items as a compute unit of a GPU holds at once.
constexpr uint64_t kItemsPerUnit = 2048;
constexpr uint64_t kVector = 16;  // bytes of an access

// Sixteen independent chains an item: they cover a multiply-add's latency without neighbours' help.
constexpr const char* kFmaText = R"(
#define STEP                   \
  a = fma(a, factor, term);    \
  b = fma(b, factor, term);    \
  c = fma(c, factor, term);    \
  d = fma(d, factor, term);
__kernel void fma_chains(__global float* out, const int steps, const float factor_bits,
                         const float term_bits) {
  const float4 factor = (float4)(factor_bits), term = (float4)(term_bits);
  const float item = (float)get_global_id(0);
  float4 a = (float4)(item), b = a + 1.0f, c = a + 2.0f, d = a + 3.0f;
  for (int i = 0; i < steps; ++i) {
    STEP STEP STEP STEP STEP STEP STEP STEP
  }
  const float4 all = (a + b) + (c + d);
  out[get_global_id(0)] = (all.x + all.y) + (all.z + all.w);
}
)";
constexpr int kFmaSteps = 2048, kStepsUnrolled = 8, kLanes = 16;

// Copies, then reads what is more, then writes what is more. `never` is no value of the source: the
// compiler does not know that, so it must read.
constexpr const char* kStreamText = R"(
__kernel void stream(__global const uint4* restrict source, __global uint4* restrict target,
                     const uint copied, const uint read, const uint filled, const uint never) {
  const uint step = get_global_size(0);
  uint i = get_global_id(0);
  for (; i + 3 * step < copied; i += 4 * step) {
    const uint4 a = source[i], b = source[i + step], c = source[i + 2 * step],
                d = source[i + 3 * step];
    target[i] = a;
    target[i + step] = b;
    target[i + 2 * step] = c;
    target[i + 3 * step] = d;
  }
  for (; i < copied; i += step) target[i] = source[i];

  uint4 all = (uint4)(0);
  for (i = copied + get_global_id(0); i + 3 * step < read; i += 4 * step) {
    all |= (source[i] | source[i + step]) | (source[i + 2 * step] | source[i + 3 * step]);
  }
  for (; i < read; i += step) all |= source[i];
  if ((all.x | all.y | all.z | all.w) == never) target[0] = all;

  for (i = copied + get_global_id(0); i < filled; i += step) target[i] = (uint4)(never);
}
)";
constexpr uint32_t kPattern = 0x3f800000, kNever = 0x40490fdb;

Arg buffer_arg(uint32_t slot) { return {Arg::Kind::kBuffer, 0, slot, 0}; }

template <class T>
Arg scalar_arg(T value) {
  Arg arg{Arg::Kind::kScalar, sizeof(T), 0, 0};
  std::memcpy(&arg.bits, &value, sizeof(T));
  return arg;
}

// A launch with its buffers.
struct Work {
  DevicePtr device;
  Launch launch;
  std::vector<BufferPtr> buffers;

  // Seconds of one of `count` launches that are waited for together.
  double run(int count) const {
    using Clock = std::chrono::steady_clock;
    std::vector<Buffer*> operands;
    for (const BufferPtr& buffer : buffers) operands.push_back(buffer.get());
    device::Stream& stream = device->default_stream();
    const Clock::time_point start = Clock::now();
    for (int i = 0; i < count; ++i) stream.submit(launch, operands.data(), operands.size());
    stream.sync();
    return std::chrono::duration<double>(Clock::now() - start).count() / count;
  }

  double fastest(int rounds, int count) const {
    double best = std::numeric_limits<double>::infinity();
    for (int round = 0; round < rounds; ++round) best = std::min(best, run(count));
    return best;
  }
};

// The number of launches of a sample, after some that are not counted.
int count_of(const Work& work) {
  constexpr double kSampleSeconds = 3e-3;
  constexpr int kMaxBatch = 2000;
  work.run(1);
  const double one = work.run(4);
  return std::clamp(static_cast<int>(kSampleSeconds / one), 1, kMaxBatch);
}

uint64_t vectors_of(uint64_t bytes) { return (bytes + kVector - 1) / kVector; }
uint64_t groups_of(uint64_t items) { return std::max<uint64_t>((items + kGroup - 1) / kGroup, 1); }

BufferPtr filled_buffer(const DevicePtr& device, uint64_t vectors) {
  const BufferPtr buffer = Buffer::create(device, std::max<uint64_t>(vectors, 1) * kVector);
  device->default_stream().fill(*buffer, 0, buffer->size(), &kPattern, sizeof(kPattern));
  return buffer;
}

Work stream_work(const DevicePtr& device, uint64_t read, uint64_t written) {
  static const SourcePtr source = device::make_source(kStreamText);
  const uint64_t from = vectors_of(read), to = vectors_of(written);
  Launch launch{source, "stream", "stream", {kGroup, 1, 1}, {kGroup, 1, 1}, {}};
  launch.args = {buffer_arg(0),
                 buffer_arg(1),
                 scalar_arg(static_cast<uint32_t>(std::min(from, to))),
                 scalar_arg(static_cast<uint32_t>(from)),
                 scalar_arg(static_cast<uint32_t>(to)),
                 scalar_arg(kNever)};
  return {device, launch, {filled_buffer(device, from), filled_buffer(device, to)}};
}

}  // namespace

DeviceLimits::DeviceLimits(const DevicePtr& device) : device_(device) {
  sums_ = Buffer::create(device, resident_items() * sizeof(float));
  launch_seconds_ = stream(kVector, kVector)();
}

uint64_t DeviceLimits::resident_items() const {
  return kItemsPerUnit * std::max<uint32_t>(device_->info().compute_units, 1);
}

double DeviceLimits::fma_peak_gflops() {
  constexpr int kRounds = 5;
  static const SourcePtr source = device::make_source(kFmaText);
  Launch launch{source, "fma_chains", "fma_chains", {resident_items(), 1, 1}, {kGroup, 1, 1}, {}};
  launch.args = {buffer_arg(0), scalar_arg(int32_t{kFmaSteps}), scalar_arg(0.999f),
                 scalar_arg(1e-3f)};
  const Work work{device_, launch, {sums_}};
  work.run(1);
  return 2e-9 * kFmaSteps * kStepsUnrolled * kLanes * static_cast<double>(resident_items()) /
         work.fastest(kRounds, 1);
}

std::function<double()> DeviceLimits::stream(uint64_t read, uint64_t written) {
  constexpr int kRounds = 4;
  Work work = stream_work(device_, read, written);
  // A grid that stays and strides, one of four vectors an item, or of one: which is fastest depends
  // on the size and the device.
  const uint64_t vectors = vectors_of(std::max(read, written));
  uint64_t fastest = 0;
  double best = std::numeric_limits<double>::infinity();
  for (const uint64_t items : {std::min(resident_items(), vectors), vectors / 4, vectors}) {
    work.launch.global[0] = groups_of(items) * kGroup;
    const double seconds = work.fastest(2, count_of(work));
    if (seconds >= best) continue;
    best = seconds;
    fastest = work.launch.global[0];
  }
  work.launch.global[0] = fastest;
  const int count = count_of(work);
  return [work, count] { return work.fastest(kRounds, count); };
}

std::string DeviceLimits::bound_of(uint64_t, double seconds) {
  constexpr double kHardlyMore = 1.25;
  return seconds < kHardlyMore * launch_seconds_ ? "launch" : "memory";
}

std::vector<CopySpeed> DeviceLimits::copies() {
  std::vector<CopySpeed> speeds;
  for (const uint64_t mib : {16, 512}) {
    const uint64_t bytes = mib << 20;
    const double seconds = stream(bytes / 2, bytes / 2)();
    speeds.push_back({std::to_string(mib) + " MiB", 1e-9 * static_cast<double>(bytes) / seconds});
  }
  return speeds;
}

}  // namespace ballast::bench
