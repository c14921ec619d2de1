#include "device/batch.h"

#include "device/event.h"
#include "device/stream_state.h"
#include "device/testing.h"

#include <atomic>
#include <cstdlib>
#include <thread>

namespace ballast::device {
namespace {

using testing::axpy;
using testing::buffer_arg;
using testing::download;
using testing::local_arg;
using testing::open_device;
using testing::scalar_arg;
using testing::slow_store;
using testing::upload;

// out[i] = scale * (i + the sum of `extras`), one group for each i of a 3-d launch; the last
// argument is 16 words of local memory, whose use it shows.
Launch number_groups(std::array<uint64_t, 3> groups, float scale, size_t extra_count = 0) {
  std::string parameters, sum = "0";
  std::vector<Arg> args = {buffer_arg(0), scalar_arg(scale)};
  for (size_t i = 0; i < extra_count; ++i) {
    parameters += fmt::format(", const {} extra{}", i % 2 == 0 ? "int" : "ulong", i);
    sum += fmt::format(" + (int)extra{}", i);
    args.push_back(i % 2 == 0 ? scalar_arg(int32_t(i)) : scalar_arg(uint64_t(i)));
  }
  args.push_back(local_arg(64));
  const SourcePtr source = make_source(fmt::format(R"(
__kernel void number_groups(__global float* out, const float scale{}, __local int* shared) {{
  const int y = get_group_id(1) + get_num_groups(1) * get_group_id(2);
  const int i = get_group_id(0) + get_num_groups(0) * y;
  shared[15] = i + {};
  out[i] = scale * shared[15];
}})",
                                                   parameters, sum));
  return {source, "number_groups", "number_groups", groups, {1, 1, 1}, args};
}

std::vector<float> numbers(size_t count, float scale, int first = 0) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = scale * float(int(i) + first);
  return values;
}

class BatchTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (device_->tasks() == nullptr) GTEST_SKIP() << "the device runs no tasks";
  }
  // sum[i] += 1, in groups of `local`.
  void add_one(Stream& stream, const BufferPtr& sum, uint32_t n, uint64_t local = 1) {
    Buffer* buffers[] = {one_.get(), sum.get(), sum.get()};
    stream.submit(axpy(n, 1.0f, local), buffers, 3);
  }

  static constexpr uint32_t kSize = 96;
  DevicePtr device_ = open_device();
  Stream& main_ = device_->default_stream();
  BufferPtr one_ = upload(device_, std::vector<float>(kSize, 1.0f));
  BufferPtr sum_ = upload(device_, std::vector<float>(kSize, 0.0f));
};

TEST_F(BatchTest, TasksFindTheirArgumentsAndGroups) {
  for (const std::array<uint64_t, 3> groups :
       {std::array<uint64_t, 3>{1, 1, 1}, {7, 1, 1}, {1, 5, 1}, {3, 1, 4}, {5, 6, 7}}) {
    const uint64_t count = groups[0] * groups[1] * groups[2];
    for (const size_t extras : {0, 3, 70, 125}) {  // words of locals: one, two
      const Launch launch = number_groups(groups, 0.5f, extras);
      EXPECT_TRUE(may_be_task(launch));
      EXPECT_NE(device_->tasks()->find(launch), nullptr);
      const BufferPtr out = Buffer::create(device_, count * 4);
      Buffer* buffers[] = {out.get()};
      main_.submit(launch, buffers, 1);
      const int first = int(extras * (extras - 1) / 2) * (extras > 0 ? 1 : 0);
      EXPECT_EQ(download<float>(out), numbers(count, 0.5f, first)) << count << ", " << extras;
    }
  }
}

TEST_F(BatchTest, WhatCannotBeATaskRunsInItsPlace) {
  EXPECT_FALSE(may_be_task(axpy(kSize, 1.0f, 8))) << "groups of several items";
  EXPECT_FALSE(may_be_task(number_groups({65535, 1, 1}, 1.0f)));
  EXPECT_FALSE(may_be_task(number_groups({2000, 1000, 1}, 1.0f)));
  EXPECT_FALSE(may_be_task(number_groups({1, 1, 1}, 1.0f, 126))) << "129 arguments";
  Launch greedy = number_groups({1, 1, 1}, 1.0f);
  greedy.args.back().bits = kTaskLocalBytes + 1;
  EXPECT_FALSE(may_be_task(greedy));
  for (int i = 0; i < 50; ++i) add_one(main_, sum_, kSize, i % 3 == 0 ? 8 : 1);
  EXPECT_EQ(download<float>(sum_), std::vector<float>(kSize, 50.0f));
}

TEST_F(BatchTest, AKernelWithAHeadOfItsOwnIsEnqueued) {
  static const SourcePtr source = make_source(
      "__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void five(__global int* out) {"
      " out[0] = 5; }");
  const Launch launch{source, "five", "five", {1, 1, 1}, {1, 1, 1}, {buffer_arg(0)}};
  EXPECT_EQ(device_->tasks()->find(launch), nullptr);
  const BufferPtr out = Buffer::create(device_, 4);
  Buffer* buffers[] = {out.get()};
  main_.submit(launch, buffers, 1);
  EXPECT_EQ(download<int>(out)[0], 5);
}

TEST_F(BatchTest, LaunchesGoTogetherWhileTheDeviceIsBusy) {
  constexpr int kRounds = 1000;
  main_.sync();
  const uint64_t launches = device_->counters().kernel_launches,
                 submits = device_->counters().submits;
  cl_int code = CL_SUCCESS;
  const EventHandle gate(clCreateUserEvent(device_->context(), &code));
  main_.wait_for(gate.get());
  for (int i = 0; i < kRounds; ++i) add_one(main_, sum_, kSize);
  clSetUserEventStatus(gate.get(), CL_COMPLETE);
  main_.sync();
  EXPECT_EQ(device_->counters().kernel_launches - launches, uint64_t{kRounds});
  EXPECT_LE(device_->counters().submits - submits, kRounds / 100u + 3);
  EXPECT_EQ(download<float>(sum_), std::vector<float>(kSize, float(kRounds)));
}

TEST_F(BatchTest, CopiesAndWritesKeepTheirPlace) {
  const BufferPtr copy = Buffer::create(device_, kSize * 4);
  std::vector<float> seen(kSize);
  for (int i = 1; i <= 100; ++i) {
    add_one(main_, sum_, kSize);
    add_one(main_, sum_, kSize);
    if (i % 10 == 0) main_.copy(*copy, 0, *sum_, 0, kSize * 4);
    add_one(main_, sum_, kSize);
    if (i % 25 == 0) {
      main_.read(seen.data(), *copy, 0, kSize * 4);
      EXPECT_EQ(seen, std::vector<float>(kSize, 3.0f * float(i - i % 10) - 1)) << i;
    }
    if (i == 60) main_.write(*sum_, 0, std::vector<float>(kSize, 180.0f).data(), kSize * 4);
  }
  EXPECT_EQ(download<float>(sum_), std::vector<float>(kSize, 300.0f));
}

TEST_F(BatchTest, AnEventStandsForLaunchesThatWait) {
  const BufferPtr slow = Buffer::create(device_, 4);
  Buffer* buffers[] = {slow.get()};
  Event done(device_);
  for (int i = 0; i < 4; ++i) main_.submit(slow_store(1'000'000, i), buffers, 1);
  done.record(main_);
  const auto other = make_stream(device_);
  done.make_wait(*other);
  EXPECT_EQ(download<int>(*other, *slow), std::vector<int>{3});
  EXPECT_TRUE(done.is_done());
  // Nobody waits: flush alone brings them about.
  for (int i = 0; i < 4; ++i) main_.submit(slow_store(1'000'000, i), buffers, 1);
  main_.flush();
  const EventHandle end = main_.marker();
  while (event_status(end.get()) > CL_COMPLETE) std::this_thread::yield();
  EXPECT_EQ(event_status(end.get()), CL_COMPLETE);
}

TEST_F(BatchTest, MemoryThatIsFreedMeanwhileStaysUntilItsLaunchesAreDone) {
  constexpr uint32_t kLarge = 4 << 20;
  const BufferPtr large_one = upload(device_, std::vector<float>(1 << 10, 1.0f));
  for (int round = 0; round < 20; ++round) {
    const BufferPtr slow = Buffer::create(device_, 4);
    Buffer* gate[] = {slow.get()};
    for (int i = 0; i < 3; ++i) main_.submit(slow_store(1'000'000, i), gate, 1);
    {
      const BufferPtr freed = Buffer::create(device_, kLarge * 4ull);
      Buffer* buffers[] = {large_one.get(), freed.get(), freed.get()};
      main_.submit(axpy(1 << 10, 1.0f), buffers, 3);
    }
    device_->pool().trim();  // gives whole regions back to the system
  }
  main_.sync();
  EXPECT_EQ(download<float>(sum_), std::vector<float>(kSize, 0.0f));
}

TEST_F(BatchTest, AStreamThatEndsHasDoneItsLaunches) {
  const BufferPtr sum = upload(device_, std::vector<float>(kSize, 0.0f));
  main_.sync();
  {
    const auto other = make_stream(device_);
    for (int i = 0; i < 300; ++i) add_one(*other, sum, kSize);
  }
  EXPECT_EQ(download<float>(sum), std::vector<float>(kSize, 300.0f));
}

TEST_F(BatchTest, StreamsOfSeveralThreadsRunSideBySide) {
  constexpr int kThreads = 4, kRounds = 400;
  std::vector<BufferPtr> sums;
  for (int i = 0; i < kThreads; ++i) {
    sums.push_back(upload(device_, std::vector<float>(kSize, 0.0f)));
  }
  main_.sync();
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      const auto stream = make_stream(device_);
      for (int round = 0; round < kRounds; ++round) {
        add_one(*stream, sums[i], kSize);
        if (round % 100 == 0) stream->sync();
      }
      stream->sync();
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const BufferPtr& sum : sums) {
    EXPECT_EQ(download<float>(sum), std::vector<float>(kSize, float(kRounds)));
  }
}

TEST(Tasks, CanBeSwitchedOff) {
  setenv("BALLAST_TASKS", "off", 1);
  DeviceOptions options;
  options.memory_limit = 48ull << 20;  // a device of its own
  const DevicePtr device = open_device(options);
  unsetenv("BALLAST_TASKS");
  EXPECT_EQ(device->tasks(), nullptr);
  const BufferPtr out = Buffer::create(device, 4 * 5);
  Buffer* buffers[] = {out.get()};
  const uint64_t submits = device->counters().submits;
  device->default_stream().submit(number_groups({5, 1, 1}, 2.0f), buffers, 1);
  EXPECT_EQ(device->counters().submits - submits, 1u);
  EXPECT_EQ(download<float>(out), numbers(5, 2.0f));
}

}  // namespace
}  // namespace ballast::device
