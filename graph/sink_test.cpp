#include "graph/sink.h"

#include "graph/test_support.h"
#include "graph/text.h"

#include <thread>

namespace ballast::graph {
namespace {

using namespace testing;
using device::BufferPtr;
using device::Code;
using device::Replay;

constexpr uint64_t kSlots = 7;
constexpr int64_t kLargeBatch = 5003;  // more than one work-item is given alone

// One set of states and a queue of kSlots different batches.
struct Regression {
  std::shared_ptr<Executable> exe;
  std::vector<BufferPtr> states;
  std::vector<float> x, t;

  explicit Regression(Replay replay, int64_t batch = 32) {
    exe = std::make_shared<Executable>(test_device(), linear_regression(batch, 10),
                                       CompileOptions{Level::kO1, replay});
    for (size_t n : {10, 1, 10, 1}) states.push_back(upload(std::vector<float>(n, 0.01f)));
    for (size_t i = 0; i < states.size(); ++i) exe->bind_state(i, states[i]);
    for (uint64_t i = 0; i < kSlots * batch * 10; ++i) x.push_back((i * 31 % 17) / 17.0f);
    for (uint64_t i = 0; i < kSlots * batch; ++i) t.push_back((i * 13 % 11) / 11.0f);
  }

  std::vector<float> sunk(uint64_t n, bool from_host) {
    Sink sink(exe, kSlots);
    const BufferPtr losses = upload(std::vector<float>(n, -1.0f));
    Queue qx{from_host ? nullptr : upload(x), from_host ? x.data() : nullptr, kSlots};
    Queue qt{from_host ? nullptr : upload(t), from_host ? t.data() : nullptr, kSlots};
    sink.run(test_device()->default_stream(), n, {qx, qt}, {{losses, nullptr, n}});
    EXPECT_EQ(sink.progress(), n);
    EXPECT_EQ(sink.info().replay_allocations, 0u);
    return download(losses);
  }

  std::vector<float> stepped(uint64_t n) {
    std::vector<float> losses;
    const size_t rows = t.size() / kSlots;
    for (uint64_t i = 0; i < n; ++i) {
      const BufferPtr loss = upload({0});
      const uint64_t slot = i % kSlots;
      exe->run(test_device()->default_stream(),
               {{nullptr, x.data() + slot * rows * 10}, {nullptr, t.data() + slot * rows}}, {loss});
      losses.push_back(download(loss)[0]);
    }
    return losses;
  }
};

TEST(Sink, SameBitsAsSteppingInEveryReplay) {
  for (Replay replay : {Replay::kList, Replay::kNative, Replay::kStitch, Replay::kAuto}) {
    if (replay == Replay::kNative && !test_device()->info().has_command_buffer) continue;
    for (int64_t batch :
         {int64_t{32}, int64_t{5}, kLargeBatch}) {  // 5: slots not aligned for views
      Regression a(replay, batch), b(replay, batch), c(replay, batch);
      const std::vector<float> expected = a.stepped(50);
      EXPECT_EQ(b.sunk(50, false), expected) << int(replay) << " batch " << batch;
      EXPECT_EQ(c.sunk(50, true), expected) << int(replay) << " batch " << batch;
      for (size_t i = 0; i < a.states.size(); ++i) {
        EXPECT_EQ(download(a.states[i]), download(b.states[i]));
      }
    }
  }
}

// More steps than one launch takes.
TEST(Sink, WorkersGoOnInTheNextLaunch) {
  constexpr uint64_t kSteps = 1500;
  Regression list(Replay::kList, kLargeBatch), stitched(Replay::kStitch, kLargeBatch);
  EXPECT_EQ(stitched.sunk(kSteps, false), list.sunk(kSteps, false));
  for (size_t i = 0; i < list.states.size(); ++i) {
    EXPECT_EQ(download(stitched.states[i]), download(list.states[i]));
  }
}

TEST(Sink, NoStepsAndManySteps) {
  Regression s(Replay::kList);
  Sink sink(s.exe, kSlots);
  const Queue qx{nullptr, s.x.data(), kSlots}, qt{nullptr, s.t.data(), kSlots};
  sink.run(test_device()->default_stream(), 0, {qx, qt}, {{}});
  EXPECT_EQ(sink.progress(), 0u);
  sink.run(test_device()->default_stream(), 1000, {qx, qt}, {{}});
  EXPECT_EQ(sink.progress(), 1000u);
}

TEST(Sink, HostQueuesMayBeScribbledAfterTheCall) {
  Regression a(Replay::kAuto), b(Replay::kAuto);
  const std::vector<float> expected = a.stepped(20);
  Sink sink(b.exe, kSlots);
  const BufferPtr losses = upload(std::vector<float>(20));
  sink.run(test_device()->default_stream(), 20,
           {{nullptr, b.x.data(), kSlots}, {nullptr, b.t.data(), kSlots}}, {{losses, nullptr, 20}});
  std::fill(b.x.begin(), b.x.end(), 1e30f);
  EXPECT_EQ(download(losses), expected);
}

TEST(Sink, UpdateRebindsAState) {
  Regression s(Replay::kList);
  Sink sink(s.exe, kSlots);
  const BufferPtr fresh = upload(std::vector<float>(10, 3.0f));
  const std::vector<float> before = download(s.states[0]);
  sink.executable().bind_state(0, fresh);
  const Queue qx{nullptr, s.x.data(), kSlots}, qt{nullptr, s.t.data(), kSlots};
  sink.run(test_device()->default_stream(), 3, {qx, qt}, {{}});
  EXPECT_EQ(download(s.states[0]), before);
  EXPECT_NE(download(fresh), std::vector<float>(10, 3.0f));
}

void expect_cancel(Regression s) {
  Sink sink(s.exe, kSlots);
  const Queue qx{nullptr, s.x.data(), kSlots}, qt{nullptr, s.t.data(), kSlots};
  constexpr uint64_t kMany = 50'000'000;  // far more than a test could wait for
  std::thread canceller([&] {
    while (sink.progress() < 100) std::this_thread::yield();
    expect_error(Code::kFailedPrecondition, "in progress", [&] {
      sink.run(test_device()->default_stream(), 1, {qx, qt}, {{}});
    });
    sink.cancel();
  });
  expect_error(Code::kCancelled, "cancelled after", [&] {
    sink.run(test_device()->default_stream(), kMany, {qx, qt}, {{}});
  });
  canceller.join();
  EXPECT_GE(sink.progress(), 100u);
  EXPECT_LT(sink.progress(), kMany);
  sink.run(test_device()->default_stream(), 5, {qx, qt}, {{}});
  EXPECT_EQ(sink.progress(), 5u);
}

TEST(Sink, ARequestToCancelHoldsUntilARunHasEnded) {
  Regression s(Replay::kList);
  Sink sink(s.exe, kSlots);
  const Queue qx{nullptr, s.x.data(), kSlots}, qt{nullptr, s.t.data(), kSlots};
  sink.cancel();
  expect_error(Code::kCancelled, "cancelled after 0 steps", [&] {
    sink.run(test_device()->default_stream(), 5, {qx, qt}, {{}});
  });
  sink.run(test_device()->default_stream(), 5, {qx, qt}, {{}});
  EXPECT_EQ(sink.progress(), 5u);
}

TEST(Sink, CancelStopsAtAStep) { expect_cancel(Regression(Replay::kList)); }

TEST(Sink, CancelStopsWorkersAtAStep) {
  if (device::stitch_workers(test_device()->info()) == 1) {
    GTEST_SKIP() << "one launch runs all steps of a list that one work-item was given";
  }
  expect_cancel(Regression(Replay::kStitch, kLargeBatch));
}

TEST(Sink, MistakesAreNamed) {
  Regression s(Replay::kList);
  Sink sink(s.exe, 2);
  auto& stream = test_device()->default_stream();
  const Queue qx{nullptr, s.x.data(), kSlots}, qt{nullptr, s.t.data(), 1};
  expect_error(Code::kInvalidArgument, "7 slots of host memory, max_slots is 2", [&] {
    sink.run(stream, 1, {qx, qt}, {{}});
  });
  expect_error(Code::kInvalidArgument, "input 0: 9 slots", [&] {
    sink.run(stream, 1, {{upload(s.x), nullptr, 9}, qt}, {{}});
  });
  expect_error(Code::kInvalidArgument, "has no slots", [&] {
    sink.run(stream, 1, {{upload(s.x), nullptr, 0}, qt}, {{}});
  });
  expect_error(Code::kInvalidArgument, "output 0: 5 slots of f32[] need 4 bytes each, got 4", [&] {
    sink.run(stream, 1, {{nullptr, s.x.data(), 1}, qt}, {{upload({0}), nullptr, 5}});
  });
  constexpr uint64_t kMany = uint64_t{1} << 62;  // times four bytes: none at all in 64 bits
  expect_error(Code::kInvalidArgument, "input 1: 4611686018427387904 slots", [&] {
    sink.run(stream, 1, {{nullptr, s.x.data(), 1}, {upload(s.t), nullptr, kMany}}, {{}});
  });
  expect_error(Code::kInvalidArgument, "output 0: 4611686018427387904 slots", [&] {
    sink.run(stream, 1, {{nullptr, s.x.data(), 1}, qt}, {{upload({0}), nullptr, kMany}});
  });
  expect_error(Code::kInvalidArgument, "[sink_create] max_slots 4611686018427387904",
               [&] { Sink(s.exe, kMany); });
  device::DeviceOptions limited;
  limited.memory_limit = 64ull << 20;
  const device::DevicePtr other = device::Device::open("", limited);
  expect_error(Code::kInvalidArgument, "output 0: buffer of another device", [&] {
    sink.run(stream, 1, {{nullptr, s.x.data(), 1}, qt}, {{device::Buffer::create(other, 4)}});
  });
  expect_error(Code::kInvalidArgument, "the stream is of another device", [&] {
    sink.run(other->default_stream(), 1, {{nullptr, s.x.data(), 1}, qt}, {{}});
  });
}

}  // namespace
}  // namespace ballast::graph
