#include "device/caller.h"

#include "device/testing.h"

#include <pthread.h>

#include <cfenv>
#include <functional>

namespace ballast::device {
namespace {

using testing::axpy;
using testing::download;
using testing::open_device;
using testing::slow_store;
using testing::upload;

constexpr uint32_t kSize = 64;

class CallerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (device_->tasks() == nullptr) GTEST_SKIP() << "the device runs no tasks";
    main_.sync();
  }
  // sum[i] += by * one[i]
  void add(float by, uint64_t bytes) {
    Launch launch = axpy(kSize, by);
    launch.bytes = bytes;
    Buffer* buffers[] = {one_.get(), sum_.get(), sum_.get()};
    main_.submit(launch, buffers, 3);
  }
  // Nobody waits for the device.
  float now() const { return *reinterpret_cast<const float*>(sum_->address()); }
  uint64_t submits() const { return device_->counters().submits; }

  static constexpr uint64_t kBytes = 3 * kSize * sizeof(float);
  DevicePtr device_ = open_device();
  Stream& main_ = device_->default_stream();
  BufferPtr one_ = upload(device_, std::vector<float>(kSize, 1.0f));
  BufferPtr sum_ = upload(device_, std::vector<float>(kSize, 0.0f));
};

TEST_F(CallerTest, ALittleLaunchOnAnIdleDeviceIsDoneWhenItIsSubmitted) {
  const uint64_t before = submits(), launches = device_->counters().kernel_launches;
  for (int i = 1; i <= 3; ++i) {
    add(0.5f, kBytes);
    EXPECT_EQ(now(), 0.5f * float(i));
  }
  EXPECT_EQ(download<float>(sum_), std::vector<float>(kSize, 1.5f));
  main_.sync();
  EXPECT_EQ(submits(), before) << "nothing was enqueued, nor read by the device";
  EXPECT_EQ(device_->counters().kernel_launches - launches, 3u);
}

TEST_F(CallerTest, WhatMayTakeLongIsEnqueued) {
  EXPECT_FALSE(is_for_caller(0)) << "not known";
  EXPECT_FALSE(is_for_caller(1 << 20));
  EXPECT_TRUE(is_for_caller(kBytes));
  for (const uint64_t bytes : {uint64_t{0}, uint64_t{1} << 20}) {
    const uint64_t before = submits();
    add(1.0f, bytes);
    EXPECT_EQ(submits(), before + 1);
    main_.sync();
  }
  EXPECT_EQ(download<float>(sum_), std::vector<float>(kSize, 2.0f));
}

TEST_F(CallerTest, WaitsForWhatWasSubmittedBefore) {
  const BufferPtr slow = Buffer::create(device_, 4);
  Buffer* buffers[] = {slow.get()};
  for (int round = 0; round < 10; ++round) {
    main_.submit(slow_store(300'000, round), buffers, 1);
    // out = slow + one: too early, it would be the round before's
    Launch launch = axpy(1, 0.0f);
    launch.bytes = 12;
    Buffer* sums[] = {one_.get(), slow.get(), sum_.get()};
    main_.submit(launch, sums, 3);
    std::vector<int> bits(1);
    main_.read(bits.data(), *sum_, 0, 4);
    float expected = 0.0f;
    std::memcpy(&expected, &round, sizeof(round));
    float found = 0.0f;
    std::memcpy(&found, bits.data(), sizeof(found));
    EXPECT_EQ(found, expected) << round;
  }
}

TEST_F(CallerTest, RoundsAsWorkersDo) {
  const int mode = std::fegetround();
  ASSERT_EQ(std::fesetround(FE_UPWARD), 0);
  add(0.1f, kBytes);
  const float first = now();
  add(1e-9f, kBytes);
  const float second = now();
  EXPECT_EQ(std::fegetround(), FE_UPWARD);
  volatile float mine = 0.1f;
  mine = mine + 1e-9f;
  std::fesetround(mode);
  EXPECT_GT(mine, 0.1f) << "the caller rounds as before";
  EXPECT_EQ(first, 0.1f);
  EXPECT_EQ(second, 0.1f) << "1e-9 is less than half a unit";
}

TEST_F(CallerTest, AThreadWithALittleStackEnqueues) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, 512 << 10), 0);
  const uint64_t before = submits();
  pthread_t thread;
  std::function<void()> body = [this] { add(1.0f, kBytes); };
  const auto run = [](void* of) -> void* {
    (*static_cast<const std::function<void()>*>(of))();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, run, &body), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
  EXPECT_EQ(submits(), before + 1);
  EXPECT_EQ(download<float>(sum_), std::vector<float>(kSize, 1.0f));
}

}  // namespace
}  // namespace ballast::device
