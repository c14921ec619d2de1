#include "graph/executable.h"

#include "device/testing.h"
#include "graph/prepared_op.h"
#include "graph/test_support.h"
#include "graph/text.h"

#include <cmath>

namespace ballast::graph {
namespace {

using namespace testing;
using device::BufferPtr;
using device::Code;
using device::Replay;

std::vector<float> ramp(size_t n, float scale, float shift = 0) {
  std::vector<float> values(n);
  for (size_t i = 0; i < n; ++i) {
    values[i] = scale * static_cast<float>((i * 37 + 11) % 29) / 29.0f + shift;
  }
  return values;
}

// The losses and the final weights of some steps of linear regression.
struct Trained {
  std::vector<float> losses, w;
};

Trained train(Level level, Replay replay, int steps, bool from_host) {
  Executable exe(test_device(), linear_regression(32, 10), {level, replay});
  const std::vector<float> x = ramp(320, 1.0f), t = ramp(32, 2.0f, 0.5f);
  const BufferPtr x_buffer = upload(x), t_buffer = upload(t);
  const std::vector<BufferPtr> states{upload(ramp(10, 0.1f)), upload({0.0f}),
                                      upload(std::vector<float>(10)), upload({0.0f})};
  for (size_t i = 0; i < states.size(); ++i) exe.bind_state(i, states[i]);
  Trained result;
  for (int i = 0; i < steps; ++i) {
    const BufferPtr loss = upload({0.0f});
    std::vector<InputBinding> inputs{{x_buffer, nullptr}, {t_buffer, nullptr}};
    if (from_host) inputs = {{nullptr, x.data()}, {nullptr, t.data()}};
    exe.run(test_device()->default_stream(), inputs, {loss});
    result.losses.push_back(download(loss)[0]);
  }
  result.w = download(states[0]);
  return result;
}

// Double-precision reference of the same training.
std::vector<double> reference_losses(int steps) {
  const std::vector<float> x = ramp(320, 1.0f), t = ramp(32, 2.0f, 0.5f), w0 = ramp(10, 0.1f);
  std::vector<double> w(w0.begin(), w0.end()), vw(10), losses;
  double b = 0, vb = 0;
  for (int step = 0; step < steps; ++step) {
    std::vector<double> dw(10);
    double db = 0, loss = 0;
    for (int i = 0; i < 32; ++i) {
      double e = b - t[i];
      for (int j = 0; j < 10; ++j) e += x[i * 10 + j] * w[j];
      loss += e * e / 32;
      for (int j = 0; j < 10; ++j) dw[j] += e * 2 / 32 * x[i * 10 + j];
      db += e * 2 / 32;
    }
    losses.push_back(loss);
    for (int j = 0; j < 10; ++j) {
      vw[j] = 0.9 * vw[j] + dw[j];
      w[j] -= 0.01 * vw[j];
    }
    vb = 0.9 * vb + db;
    b -= 0.01 * vb;
  }
  return losses;
}

TEST(Executable, TrainsLikeTheReference) {
  const Trained trained = train(Level::kO0, Replay::kList, 40, false);
  const std::vector<double> expected = reference_losses(40);
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(trained.losses[i], expected[i], 1e-5 * (1 + expected[i])) << i;
  }
  EXPECT_LT(trained.losses.back(), 0.5 * trained.losses.front());
}

TEST(Executable, EveryReplayAndHostInputsGiveTheSameBits) {
  for (Level level : {Level::kO0, Level::kO1}) {
    const Trained list = train(level, Replay::kList, 25, false);
    EXPECT_EQ(train(level, Replay::kList, 25, true).losses, list.losses);
    EXPECT_EQ(train(level, Replay::kAuto, 25, false).losses, list.losses);
    if (test_device()->info().has_command_buffer) {
      const Trained native = train(level, Replay::kNative, 25, false);
      EXPECT_EQ(native.losses, list.losses);
      EXPECT_EQ(native.w, list.w);
    }
    const Trained stitched = train(level, Replay::kStitch, 25, false);
    EXPECT_EQ(stitched.losses, list.losses);
    EXPECT_EQ(stitched.w, list.w);
  }
}

TEST(Executable, FusionChangesNoBits) {
  const Trained o0 = train(Level::kO0, Replay::kList, 25, false);
  const Trained o1 = train(Level::kO1, Replay::kList, 25, false);
  EXPECT_EQ(o1.losses, o0.losses);
  EXPECT_EQ(o1.w, o0.w);
}

// A gated layer with a residual and back through it: two products take in what is around them.
TEST(Executable, ProductsWithChainsChangeNoBits) {
  const Graph g = parse(
      "ballast.graph 1\ninput %0 \"x\": f32[9, 20]\ninput %1 \"w\": f32[36, 20]\n"
      "input %2 \"v\": f32[36, 20]\ninput %3 \"b\": f32[36]\n"
      "%4 = matmul(%0, %1) {transpose_b = 1} : f32[9, 36]\n%5 = add(%4, %3) : f32[9, 36]\n"
      "%6 = matmul(%0, %2) {transpose_b = 1} : f32[9, 36]\n%7 = silu(%5) : f32[9, 36]\n"
      "%8 = mul(%7, %6) : f32[9, 36]\n%9 = matmul(%8, %2) : f32[9, 20]\n"
      "%10 = gelu_grad(%9, %0) : f32[9, 20]\noutput %10, %8\n");
  const auto run = [&](Level level) {
    Executable exe(test_device(), g, {level, Replay::kAuto});
    const BufferPtr y = upload(std::vector<float>(180)), h = upload(std::vector<float>(324));
    exe.run(test_device()->default_stream(),
            {{upload(ramp(180, 1, -0.5f)), nullptr},
             {upload(ramp(720, 2, -1)), nullptr},
             {upload(ramp(720, 1, -0.3f)), nullptr},
             {upload(ramp(36, 1)), nullptr}},
            {y, h});
    return std::pair(std::pair(download(y), download(h)), exe.launch_count());
  };
  const auto o0 = run(Level::kO0), o1 = run(Level::kO1);
  EXPECT_EQ(o1.first, o0.first);
  EXPECT_LE(o1.second + 3, o0.second);
}

// A loss over all elements, and the gradient of a scale that rows share.
TEST(Executable, ReductionsOfChainsChangeNoBits) {
  const Graph g = parse(
      "ballast.graph 1\ninput %0 \"x\": f32[9, 20]\ninput %1 \"y\": f32[9, 20]\n"
      "%2 = sub(%0, %1) : f32[9, 20]\n%3 = mul(%2, %2) : f32[9, 20]\n"
      "%4 = reduce_mean(%3) {axes = []} : f32[]\n%5 = mul(%0, %1) : f32[9, 20]\n"
      "%6 = reduce_sum(%5) {axes = [0], keep_dims = 1} : f32[1, 20]\noutput %4, %6\n");
  const auto run = [&](Level level) {
    Executable exe(test_device(), g, {level, Replay::kAuto});
    const BufferPtr loss = upload({0}), scale = upload(std::vector<float>(20));
    exe.run(test_device()->default_stream(),
            {{upload(ramp(180, 1, -0.5f)), nullptr}, {upload(ramp(180, 2, -1)), nullptr}},
            {loss, scale});
    return std::pair(std::pair(download(loss), download(scale)), exe.launch_count());
  };
  const auto o0 = run(Level::kO0), o1 = run(Level::kO1);
  EXPECT_EQ(o1.first, o0.first);
  EXPECT_EQ(o0.second, 5u);
  EXPECT_EQ(o1.second, 2u);
}

TEST(Executable, FusionLaunchesLess) {
  const Executable o0(test_device(), linear_regression(32, 10), {Level::kO0, Replay::kList});
  const Executable o1(test_device(), linear_regression(32, 10), {Level::kO1, Replay::kList});
  EXPECT_LT(o1.launch_count(), o0.launch_count());
}

TEST(Executable, StatesSwapAndOutputsMayBeInputs) {
  const Graph g = parse(
      "ballast.graph 1\ninput %0 \"x\": f32[3]\nstate %1 \"s\": f32[3]\nstate %2 \"t\": f32[3]\n"
      "%3 = add(%1, %0) : f32[3]\nupdate %1 = %2\nupdate %2 = %1\noutput %3, %0, %1\n");
  for (Level level : {Level::kO0, Level::kO1}) {
    Executable exe(test_device(), g, {level, Replay::kAuto});
    const BufferPtr s = upload({1, 2, 3}), t = upload({4, 5, 6});
    exe.bind_state(0, s);
    exe.bind_state(1, t);
    const BufferPtr a = upload({0, 0, 0}), b = upload({0, 0, 0}), c = upload({0, 0, 0});
    exe.run(test_device()->default_stream(), {{upload({10, 20, 30}), nullptr}}, {a, b, c});
    EXPECT_EQ(download(a), (std::vector<float>{11, 22, 33}));
    EXPECT_EQ(download(b), (std::vector<float>{10, 20, 30}));
    EXPECT_EQ(download(c), (std::vector<float>{1, 2, 3}));
    EXPECT_EQ(download(s), (std::vector<float>{4, 5, 6}));
    EXPECT_EQ(download(t), (std::vector<float>{1, 2, 3}));
  }
}

TEST(Executable, StatesTradeBuffersAndShareOnesThatAreOnlyRead) {
  const Graph g = parse(
      "ballast.graph 1\nstate %0 \"s\": f32[3]\nstate %1 \"t\": f32[3]\nstate %2 \"u\": f32[3]\n"
      "%3 = sub(%0, %1) : f32[3]\n%4 = add(%0, %2) : f32[3]\nupdate %2 = %4\noutput %3\n");
  for (Replay replay : {Replay::kList, Replay::kStitch}) {
    Executable exe(test_device(), g, {Level::kO1, replay});
    const BufferPtr s = upload({1, 2, 3}), t = upload({40, 50, 60}), u = upload({0, 0, 0});
    const BufferPtr difference = upload({0, 0, 0});
    auto run = [&](const std::vector<BufferPtr>& states) {
      for (size_t i = 0; i < states.size(); ++i) exe.bind_state(i, states[i]);
      exe.run(test_device()->default_stream(), {}, {difference});
      return download(difference);
    };
    EXPECT_EQ(run({s, t, u}), (std::vector<float>{-39, -48, -57}));
    EXPECT_EQ(run({t, s, u}), (std::vector<float>{39, 48, 57}));
    EXPECT_EQ(download(u), (std::vector<float>{41, 52, 63}));
    EXPECT_EQ(run({s, s, u}), (std::vector<float>{0, 0, 0}));
    EXPECT_EQ(run({u, t, s}), (std::vector<float>{2, 4, 6}));
    EXPECT_EQ(download(s), (std::vector<float>{43, 56, 69}));
    expect_error(Code::kInvalidArgument, "states 0 and 2 share memory", [&] { run({s, t, s}); });
  }
}

TEST(Executable, OutputsMayBeDropped) {
  Executable exe(test_device(),
                 parse("ballast.graph 1\ninput %0 \"x\": f32[3]\n"
                       "%1 = neg(%0) : f32[3]\noutput %1\n"),
                 {});
  exe.run(test_device()->default_stream(), {{upload({1, 2, 3}), nullptr}}, {nullptr});
  test_device()->sync();
}

TEST(Executable, ReplayAllocatesNothing) {
  Executable exe(test_device(), linear_regression(32, 10), {Level::kO1, Replay::kList});
  const BufferPtr x = upload(ramp(320, 1)), t = upload(ramp(32, 1)), loss = upload({0});
  for (size_t i = 0; i < 4; ++i) exe.bind_state(i, upload(std::vector<float>(10)));
  auto run = [&] {
    exe.run(test_device()->default_stream(), {{x, nullptr}, {t, nullptr}}, {loss});
  };
  run();
  test_device()->sync();
  const auto before = test_device()->pool().stats();
  for (int i = 0; i < 50; ++i) run();
  test_device()->sync();
  EXPECT_EQ(test_device()->pool().stats().driver_allocations, before.driver_allocations);
  EXPECT_EQ(test_device()->pool().stats().pool_allocations, before.pool_allocations);
}

// Tens of milliseconds of work.
void keep_busy(device::Stream& stream) {
  static const BufferPtr buffer = upload({0});
  device::Buffer* buffers[] = {buffer.get()};
  stream.submit(device::testing::slow_store(20'000'000, 1), buffers, 1);
}

TEST(Executable, ConstantsAreThereOnEveryStream) {
  const Graph g = parse(
      "ballast.graph 1\ninput %0 \"x\": f32[2]\nconst %1: f32[2] = 0000803f00000040\n"
      "%2 = add(%0, %1) : f32[2]\noutput %2\n");
  const auto other = device::make_stream(test_device());
  const BufferPtr x = upload({10, 20}), sum = upload({0, 0});
  test_device()->sync();
  keep_busy(test_device()->default_stream());
  Executable exe(test_device(), g, {Level::kO0, Replay::kList});
  exe.run(*other, {{x, nullptr}}, {sum});
  EXPECT_EQ(device::testing::download<float>(*other, *sum), (std::vector<float>{11, 22}));
  test_device()->sync();
}

TEST(Executable, RunsOnTwoStreamsFollowEachOther) {
  const Graph g = parse(
      "ballast.graph 1\ninput %0 \"x\": f32[2]\nstate %1 \"s\": f32[2]\n"
      "%2 = mul(%1, %1) : f32[2]\n%3 = add(%2, %0) : f32[2]\nupdate %1 = %3\noutput %3\n");
  for (const Replay replay : {Replay::kList, Replay::kStitch}) {
    Executable exe(test_device(), g, {Level::kO0, replay});
    const BufferPtr s = upload({1, 2});
    exe.bind_state(0, s);
    auto other = device::make_stream(test_device());
    auto run = [&](device::Stream& stream, float x) {
      const float values[] = {x, x};
      exe.run(stream, {{nullptr, values}}, {nullptr});
    };
    run(*other, 0);  // 1, 4
    other->sync();
    keep_busy(test_device()->default_stream());
    run(test_device()->default_stream(), 1);  // 2, 17
    keep_busy(*other);
    run(*other, 3);  // 7, 292
    run(test_device()->default_stream(), 1);
    EXPECT_EQ(download(s), (std::vector<float>{50, 85265}));
    run(*other, 0);
    other.reset();
    run(test_device()->default_stream(), 2);
    EXPECT_EQ(download(s)[0], 6250002);
  }
}

TEST(Executable, MistakesAreNamed) {
  Executable exe(test_device(), linear_regression(4, 3), {});
  auto& stream = test_device()->default_stream();
  const InputBinding x{upload(std::vector<float>(12)), nullptr}, t{upload({0, 0, 0, 0}), nullptr};
  expect_error(Code::kFailedPrecondition, "state 0 (\"w\") is not bound", [&] {
    exe.run(stream, {x, t}, {nullptr});
  });
  const BufferPtr state = upload(std::vector<float>(3));
  expect_error(Code::kInvalidArgument, "state \"w\" is f32[1, 3] (12 bytes), the buffer has 4",
               [&] { exe.bind_state(0, upload({0})); });
  exe.bind_state(0, state);
  for (size_t i = 1; i < 4; ++i) exe.bind_state(i, state);
  expect_error(Code::kInvalidArgument, "states 0 and 1 share memory", [&] {
    exe.run(stream, {x, t}, {nullptr});
  });
  const BufferPtr whole = upload(std::vector<float>(64));
  const BufferPtr part = device::Buffer::view(whole, 128, 128);
  exe.bind_state(0, whole);
  exe.bind_state(1, part);
  expect_error(Code::kInvalidArgument, "states 0 and 1 share memory", [&] {
    exe.run(stream, {x, t}, {nullptr});
  });
  exe.bind_state(0, state);
  for (size_t i = 1; i < 4; ++i) exe.bind_state(i, upload(std::vector<float>(3)));
  expect_error(Code::kInvalidArgument, "takes 2 inputs and 1 outputs, got 1 and 1",
               [&] { exe.run(stream, {x}, {nullptr}); });
  expect_error(Code::kInvalidArgument, "input 0 (\"x\") is f32[4, 3] (48 bytes), got 16", [&] {
    exe.run(stream, {t, x}, {nullptr});
  });
  expect_error(Code::kInvalidArgument, "the buffer of output 0 is also another input", [&] {
    exe.run(stream, {x, t}, {t.buffer});
  });
  expect_error(Code::kInvalidArgument, "the buffer of output 0 is also a state", [&] {
    exe.run(stream, {x, t}, {state});
  });
  exe.bind_state(0, part);
  expect_error(Code::kInvalidArgument, "the buffer of output 0 is also a state", [&] {
    exe.run(stream, {x, t}, {whole});
  });
  exe.bind_state(0, state);
  device::DeviceOptions limited;
  limited.memory_limit = 64ull << 20;
  const device::DevicePtr other = device::Device::open("", limited);
  expect_error(Code::kInvalidArgument, "input 1: buffer of another device", [&] {
    exe.run(stream, {x, {device::Buffer::create(other, 16), nullptr}}, {nullptr});
  });
  expect_error(Code::kInvalidArgument, "[executable_run] the stream is of another device", [&] {
    exe.run(other->default_stream(), {x, t}, {nullptr});
  });
  exe.run(stream, {x, t}, {nullptr});  // and it still works
  stream.sync();
}

}  // namespace
}  // namespace ballast::graph
