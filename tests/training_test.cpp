// A whole training run through every layer: eager, jit and sink give one sequence of losses, which
// is numpy's; and each costs as many host calls as it promises.
#include "frontend/ballast_frontend.h"
#include "tests/support/losses.h"
#include "tests/support/synthetic.h"

#include <gtest/gtest.h>

namespace ballast {
namespace {

using testing::add_patterns;
using testing::expect_losses;
using testing::hashes;
using testing::LossData;
using testing::losses_one_by_one;
using testing::losses_sunk;
using testing::uniform;

constexpr int64_t kSteps = 200, kSlots = 20, kBatch = 64;
constexpr int64_t kSinkSize = 100;

struct Mlp : nn::Cell {
  nn::Dense fc0{784, 512}, fc1{512, 512}, fc2{512, 10};
  Mlp() {
    add("fc0", fc0);
    add("fc1", fc1);
    add("fc2", fc2);
    uint64_t stream = 1;
    for (const Parameter& p : parameters()) {
      uint64_t count = static_cast<uint64_t>(p.type().elements());
      p.assign(Tensor::from_host(uniform(stream++, count, 0x1p-4f), p.shape()));
    }
  }
  Tensor construct(const Tensor& x) override { return fc2(ops::relu(fc1(ops::relu(fc0(x))))); }
};

auto make_train_step() {
  Mlp net;
  nn::Momentum optimizer(net.trainable_params(), 0.003f, 0.9f);
  auto forward = [net](const Tensor& x, const Tensor& y) mutable {
    return nn::CrossEntropyLoss()(net(x), y);
  };
  auto grad_fn = value_and_grad(forward, std::nullopt, optimizer.parameters());
  return [grad_fn, optimizer](const Tensor& x, const Tensor& y) mutable {
    auto [loss, gradients] = grad_fn(x, y);
    return depend(loss, optimizer(gradients));
  };
}

const LossData& batches() {
  static const LossData* all = [] {
    std::vector<float> pixels = uniform(100, kSlots * kBatch * 784, 1.0f);
    std::vector<int32_t> digits;
    add_patterns(102, 0x1p-2f, 10, hashes(101, kSlots * kBatch), pixels, digits);
    return new LossData(Tensor::on_host(pixels, {kSlots, kBatch, 784}),
                        Tensor::on_host(digits, {kSlots, kBatch}), kSinkSize);
  }();  // never destroyed: the driver may go first
  return *all;
}

template <class Step>
std::vector<float> one_by_one(Step step) {
  return losses_one_by_one(step, batches(), kSteps);
}

template <class Loop>
std::vector<float> sunk(Loop loop) {
  return losses_sunk(loop, batches(), kSteps);
}

void expect_numpy_losses(const std::vector<float>& losses, const std::string& what) {
  expect_losses(losses, BALLAST_SOURCE_DIR "/tests/fixtures/mlp_losses.json", what);
}

JitOptions at(JitLevel level, Replay replay = Replay::kAuto) {
  JitOptions options;
  options.level = level;
  options.replay = replay;
  return options;
}

TEST(Training, EagerJitAndSinkAgreeBitForBitUnfused) {
  std::vector<float> eager = one_by_one(make_train_step());
  expect_numpy_losses(eager, "eager");
  EXPECT_EQ(eager, one_by_one(jit(make_train_step(), at(JitLevel::kO0))));
  EXPECT_EQ(eager, sunk(sink(jit(make_train_step(), at(JitLevel::kO0)))));
}

TEST(Training, JitAndSinkAgreeBitForBitFused) {
  std::vector<float> jitted = one_by_one(jit(make_train_step(), at(JitLevel::kO1)));
  expect_numpy_losses(jitted, "jit");
  EXPECT_EQ(jitted, sunk(sink(jit(make_train_step(), at(JitLevel::kO1)))));
  EXPECT_EQ(jitted, sunk(sink(jit(make_train_step(), at(JitLevel::kO1, Replay::kList)))));
}

TEST(Training, AJittedStepIsOneHostCallAndAllocatesNothing) {
  auto step = jit(make_train_step());
  const Tensor &x = batches().x[0], &y = batches().y[0];
  for (int i = 0; i < 3; ++i) step(x, y);  // compiles; output buffers come into being
  synchronize();
  Counters before = counters();
  for (int i = 0; i < 10; ++i) step(x, y);
  Counters after = counters();
  EXPECT_EQ(after.host_calls - before.host_calls, 10u);
  EXPECT_EQ(after.allocations - before.allocations, 0u);
  EXPECT_GE(after.kernel_launches - before.kernel_launches, 10u);
}

TEST(Training, ASunkRunIsOneHostCallAndAllocatesNothing) {
  auto loop = sink(jit(make_train_step()));
  auto run = [&] { loop(kSinkSize, each(batches().stacked_x), each(batches().stacked_y)); };
  for (int i = 0; i < 2; ++i) run();
  synchronize();
  Counters before = counters();
  run();
  Counters after = counters();
  EXPECT_EQ(after.host_calls - before.host_calls, 1u);
  EXPECT_EQ(after.allocations - before.allocations, 0u);
  EXPECT_EQ(loop.info().sink_allocations, 0u);
}

TEST(Training, PlannedMemoryIsBelowTheSumOfAllTemporaries) {
  auto step = jit(make_train_step());
  step(batches().x[0], batches().y[0]);
  CompiledInfo info = step.info();
  EXPECT_GE(info.arena_bytes, info.lower_bound_bytes);
  EXPECT_LT(info.arena_bytes, info.naive_bytes);
}

}  // namespace
}  // namespace ballast
