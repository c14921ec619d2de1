#include "device/testing.h"

#include <numeric>

namespace ballast::device {
namespace {

using testing::download;
using testing::open_device;
using testing::slow_store;
using testing::upload;

constexpr int kSlowRounds = 20'000'000;  // tens of milliseconds

TEST(Staging, LargerWritesArrive) {
  std::vector<uint32_t> values((72ull << 20) / 4 + 3);
  std::iota(values.begin(), values.end(), 0u);
  const BufferPtr buffer = upload(open_device(), values);
  EXPECT_EQ(download<uint32_t>(buffer), values);
}

// Its staging memory is no larger: chunks are filled again while later ones are copied from.
TEST(Staging, WritesToADeviceWithLittleMemoryArrive) {
  DeviceOptions options;
  options.memory_limit = 2ull << 20;
  const DevicePtr device = open_device(options);
  std::vector<uint32_t> values((1536ull << 10) / 4);
  const BufferPtr buffer = Buffer::create(device, values.size() * 4);
  for (uint32_t first = 0; first < 5; ++first) {
    std::iota(values.begin(), values.end(), first);
    device->default_stream().write(*buffer, 0, values.data(), values.size() * 4);
  }
  EXPECT_EQ(download<uint32_t>(buffer), values);
}

TEST(Staging, AWriteReadsItsSourceBeforeReturning) {
  const DevicePtr device = open_device();
  Stream& stream = device->default_stream();
  const BufferPtr slow = Buffer::create(device, 4), target = Buffer::create(device, 4);
  Buffer* buffers[] = {slow.get()};
  stream.submit(slow_store(kSlowRounds, 1), buffers, 1);
  int value = 5;
  stream.write(*target, 0, &value, 4);
  value = 6;
  EXPECT_EQ(download<int>(target), std::vector<int>{5});
}

}  // namespace
}  // namespace ballast::device
