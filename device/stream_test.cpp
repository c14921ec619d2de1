#include "device/stream.h"

#include "device/event.h"
#include "device/profile.h"
#include "device/stream_state.h"
#include "device/testing.h"

#include <array>
#include <atomic>
#include <chrono>
#include <thread>

namespace ballast::device {
namespace {

using testing::axpy;
using testing::download;
using ::testing::HasSubstr;
using testing::open_device;
using testing::slow_store;
using testing::upload;

constexpr int kSlowRounds = 20'000'000;  // tens of milliseconds

std::vector<uint8_t> bytes_upto(size_t n) {
  std::vector<uint8_t> bytes(n);
  for (size_t i = 0; i < n; ++i) bytes[i] = static_cast<uint8_t>(i * 7 + 3);
  return bytes;
}

class StreamTest : public ::testing::Test {
 protected:
  DevicePtr device_ = open_device();
  Stream& main_ = device_->default_stream();
};

TEST_F(StreamTest, CopiesOfOddSizesAndOffsets) {
  const std::vector<uint8_t> bytes = bytes_upto(4096);
  const BufferPtr a = upload(device_, bytes);
  const BufferPtr b = upload(device_, std::vector<uint8_t>(4096, 0));
  for (const auto& [to, from, size] : std::vector<std::array<uint64_t, 3>>{
           {1, 0, 1}, {3, 17, 13}, {4000, 5, 96}, {63, 64, 1025}}) {
    main_.fill(*b, 0, 4096, "", 1);
    main_.copy(*b, to, *a, from, size);
    const auto result = download<uint8_t>(b);
    for (uint64_t i = 0; i < 4096; ++i) {
      const bool is_inside = i >= to && i < to + size;
      ASSERT_EQ(result[i], is_inside ? bytes[from + i - to] : 0) << i;
    }
  }
  std::vector<uint8_t> part(11);
  main_.read(part.data(), *a, 1001, part.size());
  EXPECT_TRUE(std::equal(part.begin(), part.end(), bytes.begin() + 1001));
}

TEST_F(StreamTest, ZeroBytesAreLegalEverywhere) {
  const BufferPtr empty = Buffer::create(device_, 0);
  const auto has_memory = [](const BufferPtr& buffer) {
    return buffer->shared() != nullptr || buffer->mem() != nullptr;
  };
  EXPECT_TRUE(has_memory(empty));
  main_.write(*empty, 0, nullptr, 0);
  main_.read(nullptr, *empty, 0, 0);
  main_.copy(*empty, 0, *empty, 0, 0);
  main_.fill(*empty, 0, 0, "x", 1);
  EXPECT_TRUE(has_memory(Buffer::view(empty, 0, 0)));
  const BufferPtr some = Buffer::create(device_, 1024);
  EXPECT_TRUE(has_memory(Buffer::view(some, 1024, 0)));
}

TEST_F(StreamTest, RangesAndAlignmentAreChecked) {
  const BufferPtr buffer = Buffer::create(device_, 100);
  int value = 0;
  EXPECT_ERROR(main_.write(*buffer, 98, &value, 4), Code::kInvalidArgument,
               HasSubstr("[copy_from_host] 4 bytes at offset 98 exceed the buffer's 100 bytes"));
  EXPECT_ERROR(main_.read(&value, *buffer, UINT64_MAX, 4), Code::kInvalidArgument,
               HasSubstr("copy_to_host"));
  EXPECT_ERROR(main_.copy(*buffer, 0, *buffer, 2, 4), Code::kInvalidArgument, HasSubstr("overlap"));
  const BufferPtr same = Buffer::view(buffer, 0, 50);
  EXPECT_ERROR(main_.copy(*same, 8, *buffer, 10, 4), Code::kInvalidArgument, HasSubstr("overlap"));
  main_.copy(*same, 8, *buffer, 12, 4);
  EXPECT_ERROR(main_.fill(*buffer, 2, 8, &value, 4), Code::kInvalidArgument, HasSubstr("pattern"));
  EXPECT_ERROR(main_.fill(*buffer, 0, 9, &value, 3), Code::kInvalidArgument, HasSubstr("got 3"));
  EXPECT_ERROR(Buffer::view(buffer, 1, 4), Code::kInvalidArgument, HasSubstr("alignment"));
  EXPECT_ERROR(Buffer::view(buffer, 0, 101), Code::kInvalidArgument, HasSubstr("exceed"));
}

TEST_F(StreamTest, FillRepeatsEveryPatternSize) {
  const BufferPtr buffer = Buffer::create(device_, 64);
  const std::vector<uint8_t> pattern = bytes_upto(16);
  for (uint64_t size : {1, 2, 4, 8, 16}) {
    main_.fill(*buffer, 0, 64, pattern.data(), size);
    const auto result = download<uint8_t>(buffer);
    for (size_t i = 0; i < 64; ++i) ASSERT_EQ(result[i], pattern[i % size]) << size;
  }
}

TEST_F(StreamTest, AViewOfTheSamePartIsTheSameMemoryObject) {
  const uint64_t step = device_->info().buffer_alignment;
  const BufferPtr whole = upload(device_, bytes_upto(24 * step));
  const uint64_t serial = Buffer::view(whole, step, step)->serial();
  EXPECT_EQ(Buffer::view(whole, step, step)->serial(), serial);
  // In shared memory it is the address that kernels take.
  EXPECT_EQ(Buffer::view(whole, step, 2 * step)->serial() == serial, whole->shared() != nullptr);
  // Of more parts than a block keeps, each view has its own.
  for (uint64_t i = 0; i < 24; ++i) {
    const BufferPtr part = Buffer::view(whole, i * step, step);
    EXPECT_EQ(download<uint8_t>(part)[0], bytes_upto(24 * step)[i * step]);
  }
}

TEST_F(StreamTest, ViewsShareTheirParentsMemory) {
  const uint64_t step = device_->info().buffer_alignment;
  const BufferPtr whole = upload(device_, bytes_upto(4 * step));
  const BufferPtr inner = Buffer::view(Buffer::view(whole, step, 3 * step), step, step);
  const std::vector<uint8_t> all = bytes_upto(4 * step);
  EXPECT_EQ(download<uint8_t>(inner),
            std::vector<uint8_t>(all.begin() + 2 * step, all.begin() + 3 * step));
}

TEST_F(StreamTest, SubmitUsesBuffersAndScalarsOfEachCall) {
  const uint32_t n = 1000;
  std::vector<float> ones(n, 1.0f), twos(n, 2.0f);
  const BufferPtr a = upload(device_, ones), b = upload(device_, twos);
  const BufferPtr x = Buffer::create(device_, n * 4), y = Buffer::create(device_, n * 4);
  Buffer* first[] = {a.get(), b.get(), x.get()};
  Buffer* second[] = {b.get(), x.get(), y.get()};
  const uint64_t submits = device_->counters().submits,
                 launches = device_->counters().kernel_launches;
  main_.submit(axpy(n, 3.0f), first, 3);       // 1 * 3 + 2 = 5
  main_.submit(axpy(n, 10.0f, 8), second, 3);  // 2 * 10 + 5 = 25
  EXPECT_EQ(device_->counters().submits - submits, 2u);
  EXPECT_EQ(device_->counters().kernel_launches - launches, 2u);
  EXPECT_EQ(download<float>(x), std::vector<float>(n, 5.0f));
  EXPECT_EQ(download<float>(y), std::vector<float>(n, 25.0f));
}

TEST_F(StreamTest, BadLaunchesAreRefused) {
  const BufferPtr a = Buffer::create(device_, 64);
  Buffer* buffers[] = {a.get(), a.get()};
  EXPECT_ERROR(main_.submit(axpy(4, 1.0f), buffers, 2), Code::kInvalidArgument,
               HasSubstr("[axpy_f32] an argument wants buffer 2 of 2"));
  EXPECT_ERROR(main_.submit(axpy(0, 1.0f), buffers, 2), Code::kInvalidArgument,
               HasSubstr("0 work-items"));
  EXPECT_ERROR(main_.submit(axpy(10, 1.0f, 4), buffers, 2), Code::kInvalidArgument,
               HasSubstr("10 work-items in groups of 4"));
  Launch unknown = axpy(4, 1.0f);
  unknown.kernel = "missing";
  Buffer* three[] = {a.get(), a.get(), a.get()};
  EXPECT_ERROR(main_.submit(unknown, three, 3), Code::kNotFound, HasSubstr("[missing]"));
}

TEST_F(StreamTest, AnotherDevicesBuffersAndEventsAreRefused) {
  DeviceOptions options;
  options.memory_limit = 64ull << 20;
  const DevicePtr foreign = open_device(options);
  const BufferPtr own = Buffer::create(device_, 64), other = Buffer::create(foreign, 64);
  Buffer* buffers[] = {own.get(), other.get(), own.get()};
  int value = 0;
  auto refuses = [](auto call, const char* part) {
    EXPECT_ERROR(call(), Code::kInvalidArgument, HasSubstr(part));
  };
  refuses([&] { main_.submit(axpy(4, 1.0f), buffers, 3); }, "[axpy_f32] a buffer of another");
  refuses([&] { main_.write(*other, 0, &value, 4); }, "[copy_from_host] a buffer of another");
  refuses([&] { main_.read(&value, *other, 0, 4); }, "[copy_to_host] a buffer of another");
  refuses([&] { main_.copy(*own, 0, *other, 0, 4); }, "[copy] a buffer of another device");
  refuses([&] { main_.fill(*other, 0, 4, &value, 4); }, "[fill] a buffer of another device");
  Event event(foreign);
  event.record(foreign->default_stream());
  refuses([&] { event.make_wait(main_); }, "[stream_wait_event] the event is of another device");
  CommandList list(device_);
  list.append_copy({own}, {nullptr, 0}, 4);
  list.freeze(Replay::kList);
  refuses([&] { list.replay(main_, {other}); }, "[replay] a buffer of another device");
  refuses([&] { list.replay(foreign->default_stream(), {own}); }, "[replay] the stream is of");
}

TEST_F(StreamTest, EventsOrderStreams) {
  const auto other = make_stream(device_);
  const BufferPtr shared = Buffer::create(device_, 4);
  const BufferPtr result = Buffer::create(device_, 4);
  Event written(device_);
  EXPECT_FALSE(written.is_done());
  EXPECT_ERROR(written.wait(), Code::kFailedPrecondition, HasSubstr("never recorded"));
  Buffer* buffers[] = {shared.get()};
  main_.submit(slow_store(kSlowRounds, 42), buffers, 1);
  written.record(main_);
  written.make_wait(*other);
  other->copy(*result, 0, *shared, 0, 4);
  EXPECT_EQ(download<int>(*other, *result), std::vector<int>{42});
  written.wait();
  EXPECT_TRUE(written.is_done());
  EXPECT_ERROR(Event::elapsed_ns(written, written), Code::kFailedPrecondition,
               HasSubstr("options.profile"));
}

TEST_F(StreamTest, MemoryIsReusedInStreamOrder) {
  // The block goes from the default stream's slow kernel to another stream, which must wait for it.
  device_->sync();
  device_->pool().trim();
  BufferPtr first = Buffer::create(device_, 4096);
  const uint64_t serial = first->serial();
  Buffer* buffers[] = {first.get()};
  main_.submit(slow_store(kSlowRounds, 1), buffers, 1);
  first.reset();
  const BufferPtr second = Buffer::create(device_, 4096);
  ASSERT_EQ(second->serial(), serial);
  const auto other = make_stream(device_);
  const int value = 2;
  other->write(*second, 0, &value, 4);
  other->sync();
  main_.sync();
  EXPECT_EQ(download<int>(second)[0], 2);
}

TEST_F(StreamTest, OtherStreamsSeeAnUpload) {
  const auto other = make_stream(device_);
  const BufferPtr slow = Buffer::create(device_, 4);
  Buffer* buffers[] = {slow.get()};
  main_.submit(slow_store(kSlowRounds, 1), buffers, 1);
  const std::vector<int> values = {3, 1, 4};
  const BufferPtr buffer = Buffer::upload(device_, values.data(), values.size() * sizeof(int));
  EXPECT_EQ(download<int>(*other, *buffer), values);
}

TEST_F(StreamTest, MemoryOfAnotherStreamIsNotReusedBeforeItIsDone) {
  const auto other = make_stream(device_);
  BufferPtr first = Buffer::create(device_, 4096);
  cl_int code = CL_SUCCESS;
  const EventHandle gate(clCreateUserEvent(device_->context(), &code));
  other->wait_for(gate.get());
  const int value = 1;
  other->write(*first, 0, &value, 4);
  const uint64_t serial = first->serial();
  first.reset();
  const BufferPtr second = Buffer::create(device_, 4096);
  EXPECT_NE(second->serial(), serial);
  clSetUserEventStatus(gate.get(), CL_COMPLETE);
  other->sync();
}

TEST_F(StreamTest, TwoThreadsSubmitToOneStream) {
  const uint32_t n = 256;
  const int rounds = 200;
  const BufferPtr one = upload(device_, std::vector<float>(n, 1.0f));
  auto work = [&](BufferPtr sum) {
    // sum = one * 1 + sum, in place.
    Buffer* buffers[] = {one.get(), sum.get(), sum.get()};
    for (int i = 0; i < rounds; ++i) {
      main_.submit(axpy(n, 1.0f), buffers, 3);
      const float unused = 0;
      main_.write(*Buffer::create(device_, 64), 0, &unused, 4);
    }
  };
  const BufferPtr x = upload(device_, std::vector<float>(n, 0.0f));
  const BufferPtr y = upload(device_, std::vector<float>(n, 100.0f));
  std::thread first(work, x), second(work, y);
  first.join();
  second.join();
  EXPECT_EQ(download<float>(x), std::vector<float>(n, float(rounds)));
  EXPECT_EQ(download<float>(y), std::vector<float>(n, 100.0f + rounds));
}

TEST_F(StreamTest, TwoThreadsWithStreamsOfTheirOwnShareABuffer) {
  const uint32_t n = 256;
  const BufferPtr one = upload(device_, std::vector<float>(n, 1.0f));
  main_.sync();
  auto work = [&](float* last) {
    const auto stream = make_stream(device_);
    const BufferPtr sum = Buffer::create(device_, n * 4);
    const float zero = 0;
    stream->fill(*sum, 0, n * 4, &zero, 4);
    Buffer* buffers[] = {one.get(), sum.get(), sum.get()};
    for (int i = 0; i < 100; ++i) stream->submit(axpy(n, 1.0f), buffers, 3);
    *last = download<float>(*stream, *sum).back();
  };
  float a = 0, b = 0;
  std::thread first(work, &a), second(work, &b);
  first.join();
  second.join();
  EXPECT_EQ(a, 100.0f);
  EXPECT_EQ(b, 100.0f);
  device_->sync();
}

TEST_F(StreamTest, FailureIsStickyAndTheDeviceReportsIt) {
  const auto stream = make_stream(device_);
  const BufferPtr buffer = Buffer::create(device_, 4);
  const int value = 1;
  cl_int code = CL_SUCCESS;
  const EventHandle gate(clCreateUserEvent(device_->context(), &code));
  const cl_event wait = gate.get();
  cl_event event = nullptr;
  {
    std::lock_guard lock(stream->state().mutex);
    code = buffer->shared() != nullptr
               ? clEnqueueSVMMemcpy(stream->queue(), CL_FALSE, buffer->shared(), &value, 4, 1,
                                    &wait, &event)
               : clEnqueueWriteBuffer(stream->queue(), buffer->mem(), CL_FALSE, 0, 4, &value, 1,
                                      &wait, &event);
    ASSERT_EQ(code, CL_SUCCESS);
    clRetainEvent(event);
    stream->end(code, "copy_from_host", event, "");
  }
  const EventHandle failing(event);
  ASSERT_EQ(clSetUserEventStatus(gate.get(), CL_OUT_OF_RESOURCES), CL_SUCCESS);
  clWaitForEvents(1, &event);
  if (event_status(event) >= 0) GTEST_SKIP() << "the driver runs commands behind a failed event";
  EXPECT_ERROR(stream->sync(), Code::kDeviceLost,
               HasSubstr("[sync] a command of the stream failed"));
  EXPECT_ERROR(stream->write(*buffer, 0, &value, 4), Code::kDeviceLost, HasSubstr("[sync]"));
  EXPECT_ERROR(stream->check(), Code::kDeviceLost, HasSubstr("[sync]"));
  EXPECT_ERROR(device_->sync(), Code::kDeviceLost, HasSubstr("[sync]"));
  main_.sync();  // the other stream is not concerned
}

TEST_F(StreamTest, AFailedEventMakesTheStreamFail) {
  const auto stream = make_stream(device_);
  cl_int code = CL_SUCCESS;
  const EventHandle event(clCreateUserEvent(device_->context(), &code));
  clSetUserEventStatus(event.get(), CL_OUT_OF_RESOURCES);
  EXPECT_ERROR(stream->state().wait(event.get(), "test"), Code::kDeviceLost,
               HasSubstr("CL_OUT_OF_RESOURCES"));
  EXPECT_ERROR(stream->sync(), Code::kDeviceLost, HasSubstr("[test]"));
}

TEST_F(StreamTest, AReadThatFailsHasEnded) {
  const auto stream = make_stream(device_);
  const BufferPtr buffer = upload(device_, std::vector<int>{7});
  device_->sync();
  cl_int code = CL_SUCCESS;
  const EventHandle gate(clCreateUserEvent(device_->context(), &code));
  const cl_event wait = gate.get();
  Buffer* buffers[] = {buffer.get()};
  clEnqueueBarrierWithWaitList(stream->queue(), 1, &wait, nullptr);
  for (int i = 0; i < 2; ++i) stream->submit(slow_store(1, 8), buffers, 1);
  EventHandle failed(clCreateUserEvent(device_->context(), &code));
  clSetUserEventStatus(failed.get(), CL_OUT_OF_RESOURCES);
  {
    std::lock_guard lock(stream->state().mutex);
    stream->state().last = std::move(failed);
  }
  std::atomic<bool> is_open{false};
  std::thread opener([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    is_open = true;
    clSetUserEventStatus(gate.get(), CL_COMPLETE);
  });
  int value = 0;
  EXPECT_ERROR(stream->read(&value, *buffer, 0, 4), Code::kDeviceLost,
               HasSubstr("CL_OUT_OF_RESOURCES"));
  EXPECT_TRUE(is_open);
  opener.join();
}

TEST(DeviceLost, IsStickyAndEndsWithTheDevice) {
  DeviceOptions options;
  options.memory_limit = 32ull << 20;
  DevicePtr device = open_device(options);
  const BufferPtr buffer = Buffer::create(device, 4);
  device->mark_lost("first");
  device->mark_lost("second");
  const int value = 0;
  EXPECT_ERROR(device->default_stream().write(*buffer, 0, &value, 4), Code::kDeviceLost,
               HasSubstr("was lost: first"));
  EXPECT_ERROR(Buffer::create(device, 4), Code::kDeviceLost, HasSubstr("first"));
  EXPECT_ERROR(device->sync(), Code::kDeviceLost, HasSubstr("first"));
  EXPECT_NE(open_device(options), device) << "a lost device is not handed out again";
}

TEST(DeviceProfile, TimesKernelsAndEvents) {
  DeviceOptions options;
  options.profile = true;
  const DevicePtr device = open_device(options);
  Stream& stream = device->default_stream();
  const BufferPtr buffer = Buffer::create(device, 4);
  Buffer* buffers[] = {buffer.get()};
  Event start(device), end(device);
  start.record(stream);
  for (int i = 0; i < 3; ++i) stream.submit(slow_store(kSlowRounds, i), buffers, 1);
  end.record(stream);
  stream.sync();
  const std::vector<ProfileRow> rows = device->profile()->drain();
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].kernel, "slow_store");
  EXPECT_EQ(rows[0].count, 3u);
  EXPECT_GE(rows[0].total_ns, 3 * rows[0].min_ns);
  EXPECT_GT(rows[0].min_ns, 100'000u);  // twenty million additions
  EXPECT_GE(Event::elapsed_ns(start, end), rows[0].total_ns);
  EXPECT_TRUE(device->profile()->drain().empty());
}

}  // namespace
}  // namespace ballast::device
