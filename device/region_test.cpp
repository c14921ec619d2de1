#include "device/region.h"

#include "device/testing.h"

namespace ballast::device {
namespace {

using testing::open_device;

// A CPU's region is this process's memory, which must not end with the last handle to it.
TEST(RegionTest, LivesAsLongAsCommandsUseIt) {
  const DevicePtr device = open_device();
  constexpr uint64_t kBytes = 4ull << 20;
  DriverMemory memory = make_region(device->context(), device->id(), kBytes);
  if (memory.shared) GTEST_SKIP() << "shared memory goes when nothing uses it";
  MemHandle& region = memory.buffer;
  ASSERT_NE(region, nullptr);
  cl_int code = CL_SUCCESS;
  const QueueHandle queue(
      clCreateCommandQueueWithProperties(device->context(), device->id(), nullptr, &code));
  cl_check(code, "clCreateCommandQueueWithProperties");
  const EventHandle gate(clCreateUserEvent(device->context(), &code));
  cl_check(code, "clCreateUserEvent");

  const cl_event waits = gate.get();
  const uint32_t number = 0x5eed;
  cl_check(clEnqueueFillBuffer(queue.get(), region.get(), &number, sizeof(number), 0, kBytes, 1,
                               &waits, nullptr),
           "clEnqueueFillBuffer");
  std::vector<uint32_t> found(kBytes / sizeof(number));
  cl_check(clEnqueueReadBuffer(queue.get(), region.get(), CL_FALSE, 0, kBytes, found.data(), 0,
                               nullptr, nullptr),
           "clEnqueueReadBuffer");
  region.reset();
  cl_check(clSetUserEventStatus(gate.get(), CL_COMPLETE), "clSetUserEventStatus");
  cl_check(clFinish(queue.get()), "clFinish");
  EXPECT_THAT(found, ::testing::Each(number));
}

}  // namespace
}  // namespace ballast::device
