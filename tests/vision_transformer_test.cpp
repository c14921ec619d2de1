// The model of examples/vision_transformer: its losses are JAX's, the same in every mode, and those
// of a run that was stopped and loaded are those of one that was not.
#include "examples/vision_transformer/model.h"
#include "frontend/ballast_frontend.h"
#include "tests/support/losses.h"
#include "tests/support/synthetic.h"

#include <gtest/gtest.h>

#include <filesystem>

namespace ballast {
namespace {

using testing::LossData;
using testing::losses_one_by_one;
using testing::losses_sunk;
using vision_transformer::make_train_net;
using vision_transformer::VisionTransformer;

constexpr int64_t kSteps = 100, kSlots = 20, kBatch = 8, kImage = 32, kClasses = 10;

nn::TrainOneStepCell train_net() {
  VisionTransformer model(kImage, /*patch_size=*/8, /*dim=*/64, /*num_heads=*/4, kClasses);
  uint64_t stream = 0;
  for (const Parameter& p : model.parameters()) {
    ++stream;
    if (p.name().rfind("norm.", 0) == 0) continue;  // ones and zeros
    const auto count = static_cast<uint64_t>(p.type().elements());
    p.assign(Tensor::from_host(testing::uniform(stream, count, 0x1p-3f), p.shape()));
  }
  return make_train_net(std::move(model));
}

const LossData& batches() {
  static const LossData* all = [] {
    std::vector<float> pixels = testing::uniform(100, kSlots * kBatch * 3 * kImage * kImage, 1.0f);
    std::vector<int32_t> labels;
    testing::add_patterns(102, 0x1p-2f, kClasses, testing::hashes(101, kSlots * kBatch), pixels,
                          labels);
    return new LossData(Tensor::on_host(pixels, {kSlots, kBatch, 3, kImage, kImage}),
                        Tensor::on_host(labels, {kSlots, kBatch}), kSteps);
  }();  // never destroyed: the driver may go first
  return *all;
}

void expect_jax_losses(const std::vector<float>& losses, const std::string& what) {
  testing::expect_losses(losses, BALLAST_SOURCE_DIR "/tests/fixtures/vit_losses.json", what);
}

auto jitted(JitLevel level) {
  JitOptions options;
  options.level = level;
  return jit(train_net(), options);
}

auto losses_of = [](auto step) { return losses_one_by_one(step, batches(), kSteps); };
auto losses_of_sink = [](auto loop) { return losses_sunk(loop, batches(), kSteps); };

TEST(VisionTransformer, EagerJitAndSinkAgreeBitForBitUnfused) {
  const std::vector<float> eager = losses_of(train_net());
  expect_jax_losses(eager, "eager");
  EXPECT_EQ(eager, losses_of(jitted(JitLevel::kO0)));
  EXPECT_EQ(eager, losses_of_sink(sink(jitted(JitLevel::kO0))));
}

TEST(VisionTransformer, JitAndSinkAgreeBitForBitFused) {
  const std::vector<float> losses = losses_of(jitted(JitLevel::kO1));
  expect_jax_losses(losses, "jit");
  EXPECT_EQ(losses, losses_of_sink(sink(jitted(JitLevel::kO1))));
}

TEST(VisionTransformer, GoesOnFromACheckpointWithTheSameBits) {
  const std::string path = ::testing::TempDir() + "vision_transformer.safetensors";
  constexpr int64_t kFirst = 7, kAll = 20;
  auto whole = jitted(JitLevel::kO1);
  const std::vector<float> expected = losses_one_by_one(whole, batches(), kAll);

  auto net = train_net();
  auto step = jit(net);
  std::vector<float> losses = losses_one_by_one(step, batches(), kFirst);
  save_checkpoint(path, net);
  auto other = train_net();
  auto rest = jit(other);
  load_into(other, path);
  for (size_t i = kFirst; i < kAll; ++i) {
    losses.push_back(rest(batches().x[i], batches().y[i]).item<float>());
  }
  EXPECT_EQ(losses, expected);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace ballast
