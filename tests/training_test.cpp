// A whole training run through every layer: eager, jit and sink give one sequence of losses, which
// is numpy's; and each costs as many host calls as it promises.
#include "frontend/ballast_frontend.h"
#include "tests/support/synthetic.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

namespace ballast {
namespace {

using testing::hashes;
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

// The synthetic batches, one by one, and kSinkSize of them stacked (they repeat); on the device.
struct Batches {
  std::vector<Tensor> images, labels;
  Tensor stacked_images, stacked_labels;

  Batches() {
    std::vector<float> pixels = uniform(100, kSlots * kBatch * 784, 1.0f);
    std::vector<int32_t> digits;
    std::vector<float> patterns = uniform(102, 10 * 784, 0x1p-2f);
    for (uint32_t hash : hashes(101, kSlots * kBatch)) {
      digits.push_back(hash % 10);
      float* row = pixels.data() + (digits.size() - 1) * 784;
      for (int i = 0; i < 784; ++i) row[i] += patterns[digits.back() * 784 + i];
    }
    for (int64_t i = 0; i < kSlots; ++i) {
      auto x = pixels.begin() + i * kBatch * 784;
      auto y = digits.begin() + i * kBatch;
      images.push_back(Tensor::from_host(std::vector(x, x + kBatch * 784), {kBatch, 784}));
      labels.push_back(Tensor::from_host(std::vector(y, y + kBatch), {kBatch}));
    }
    std::vector<float> many_pixels;
    std::vector<int32_t> many_digits;
    for (int64_t i = 0; i < kSinkSize / kSlots; ++i) {
      many_pixels.insert(many_pixels.end(), pixels.begin(), pixels.end());
      many_digits.insert(many_digits.end(), digits.begin(), digits.end());
    }
    stacked_images = Tensor::from_host(many_pixels, {kSinkSize, kBatch, 784});
    stacked_labels = Tensor::from_host(many_digits, {kSinkSize, kBatch});
  }
};

const Batches& batches() {
  static const Batches* all = new Batches();  // never destroyed: the driver may go first
  return *all;
}

template <class Step>
std::vector<float> losses_one_by_one(Step step) {
  std::vector<Tensor> losses;
  for (int64_t i = 0; i < kSteps; ++i) {
    losses.push_back(step(batches().images[i % kSlots], batches().labels[i % kSlots]));
  }
  std::vector<float> values;
  for (const Tensor& loss : losses) values.push_back(loss.item<float>());
  return values;
}

template <class Loop>
std::vector<float> losses_sunk(Loop loop) {
  std::vector<float> values;
  for (int64_t done = 0; done < kSteps; done += kSinkSize) {
    Tensor losses = loop(kSinkSize, each(batches().stacked_images), each(batches().stacked_labels));
    for (float loss : losses.to_host<float>()) values.push_back(loss);
  }
  return values;
}

void expect_numpy_losses(const std::vector<float>& losses, const std::string& what) {
  std::ifstream file(std::string(BALLAST_SOURCE_DIR) + "/tests/fixtures/mlp_losses.json");
  auto expected = nlohmann::json::parse(file)["losses"].get<std::vector<double>>();
  ASSERT_EQ(expected.size(), losses.size()) << what;
  for (size_t i = 0; i < losses.size(); ++i) {
    ASSERT_NEAR(losses[i], expected[i], 1e-4 * expected[i]) << what << ", step " << i;
  }
}

JitOptions at(JitLevel level, Replay replay = Replay::kAuto) {
  JitOptions options;
  options.level = level;
  options.replay = replay;
  return options;
}

TEST(Training, EagerJitAndSinkAgreeBitForBitUnfused) {
  std::vector<float> eager = losses_one_by_one(make_train_step());
  expect_numpy_losses(eager, "eager");
  EXPECT_EQ(eager, losses_one_by_one(jit(make_train_step(), at(JitLevel::kO0))));
  EXPECT_EQ(eager, losses_sunk(sink(jit(make_train_step(), at(JitLevel::kO0)))));
}

TEST(Training, JitAndSinkAgreeBitForBitFused) {
  std::vector<float> jitted = losses_one_by_one(jit(make_train_step(), at(JitLevel::kO1)));
  expect_numpy_losses(jitted, "jit");
  EXPECT_EQ(jitted, losses_sunk(sink(jit(make_train_step(), at(JitLevel::kO1)))));
  EXPECT_EQ(jitted, losses_sunk(sink(jit(make_train_step(), at(JitLevel::kO1, Replay::kList)))));
}

TEST(Training, AJittedStepIsOneHostCallAndAllocatesNothing) {
  auto step = jit(make_train_step());
  const Tensor &x = batches().images[0], &y = batches().labels[0];
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
  auto run = [&] {
    loop(kSinkSize, each(batches().stacked_images), each(batches().stacked_labels));
  };
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
  step(batches().images[0], batches().labels[0]);
  CompiledInfo info = step.info();
  EXPECT_GE(info.arena_bytes, info.lower_bound_bytes);
  EXPECT_LT(info.arena_bytes, info.naive_bytes);
}

}  // namespace
}  // namespace ballast
