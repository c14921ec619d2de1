#include "device/tasks.h"

#include "device/batch.h"
#include "device/testing.h"

namespace ballast::device {
namespace {

using testing::buffer_arg;
using testing::download;
using testing::local_arg;
using testing::open_device;
using testing::slow_store;

class TasksTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (device_->tasks() == nullptr) GTEST_SKIP() << "the device runs no tasks";
  }
  // Of one group, with these arguments behind `out`.
  Launch launch_of(const std::string& entry, const std::string& text, std::vector<Arg> args = {}) {
    args.insert(args.begin(), buffer_arg(0));
    return {make_source("__kernel void " + text), entry, entry, {1, 1, 1}, {1, 1, 1}, args};
  }
  // In this thread, if it is a task.
  int run(Launch launch) {
    launch.bytes = 8;
    const BufferPtr out = Buffer::create(device_, 8);
    Buffer* buffers[] = {out.get()};
    device_->sync();
    device_->default_stream().submit(launch, buffers, 1);
    return download<int>(out)[0];
  }
  uint64_t programs() const {
    return device_->counters().programs_built + device_->counters().programs_cached;
  }

  DevicePtr device_ = open_device();
};

TEST_F(TasksTest, OneArgumentOfLocalMemoryIsAllATaskTakes) {
  const std::string text =
      "two(__global int* out, __local int* a, __local int* b) {"
      " a[0] = 1; b[0] = 2; out[0] = 10 * a[0] + b[0]; }";
  const Launch launch = launch_of("two", text, {local_arg(64), local_arg(64)});
  EXPECT_FALSE(may_be_task(launch));
  EXPECT_EQ(run(launch), 12);
}

TEST_F(TasksTest, LocalMemoryOfABodyMakesAKernelNoTask) {
  const Launch launch =
      launch_of("inner",
                "inner(__global int* out, __local int* a) {"
                " __local volatile int b[16]; a[3] = 1; b[3] = 5; out[0] = a[3] + b[3]; }",
                {local_arg(64)});
  EXPECT_EQ(device_->tasks()->find(launch), nullptr);
  EXPECT_EQ(run(launch), 6);
}

TEST_F(TasksTest, WhatDoesNotCompileAsATaskIsBuiltAsItIs) {
  const Launch launch =
      launch_of("seven", "seven(__global int* out /* (misleading) */) { out[0] = 7; }");
  CommandList list(device_);
  const BufferPtr out = Buffer::create(device_, 4);
  list.append(launch, {{out}});
  list.freeze(Replay::kList);
  list.replay(device_->default_stream(), {});
  EXPECT_EQ(download<int>(out)[0], 7);
}

TEST_F(TasksTest, NativeReplayBuildsNoTasks) {
  if (!device_->info().has_command_buffer) GTEST_SKIP() << "no command buffers";
  CommandList list(device_);
  list.append(launch_of("nine", "nine(__global int* out) { out[0] = 9; }"),
              {{Buffer::create(device_, 4)}});
  const uint64_t before = programs();
  list.freeze(Replay::kNative);
  EXPECT_EQ(programs() - before, 1u);
}

TEST_F(TasksTest, LaunchesThatCannotBeEnqueuedAreForgotten) {
  const Launch launch = slow_store(1, 1);
  TaskWords words;
  write_task_words(launch, &words);
  Batch batch(*device_);
  batch.add(device_->tasks()->find(launch), words);
  cl_event event = nullptr;
  EXPECT_EQ(batch.enqueue(nullptr, nullptr, &event), CL_INVALID_COMMAND_QUEUE);
  EXPECT_TRUE(batch.is_idle());
}

}  // namespace
}  // namespace ballast::device
