// Loading into parameters: all or nothing, with a report; and a run that is saved, loaded into a
// new model and continued has the bits of one that was never interrupted.
#include "frontend/state/checkpoint.h"

#include "frontend/ballast_frontend.h"
#include "frontend/test_support.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

namespace ballast {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using tests::message_of;

class CheckpointTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::UnitTest::GetInstance()->current_test_info()->name();
    std::replace(name.begin(), name.end(), '/', '_');
    path_ = (std::filesystem::temp_directory_path() /
             fmt::format("ballast_{}_{}.safetensors", name, getpid()))
                .string();
  }
  void TearDown() override { std::filesystem::remove(path_); }

  std::string path_;
};

std::vector<Parameter> two_parameters(float value) {
  return {Parameter(Tensor::full({2, 3}, value), "w"),
          Parameter(Tensor::full({4}, value, DType::kBF16), "b")};
}

TEST_F(CheckpointTest, SavesAndLoadsByName) {
  const std::vector<Parameter> source = two_parameters(2), target = two_parameters(0);
  save_checkpoint(path_, StateDict(source), {{"step", "7"}});
  const LoadReport report = load_into(target, path_);
  EXPECT_TRUE(report.is_complete());
  EXPECT_THAT(report.loaded, ElementsAre("b", "w"));
  EXPECT_THAT(target[0].value().to_host<float>(), testing::Each(2.0f));
  EXPECT_THAT(target[1].value().to_host<float>(), testing::Each(2.0f));

  const Checkpoint read = load_checkpoint(path_);
  EXPECT_EQ(read.metadata.at("step"), "7");
  EXPECT_EQ(read.tensors.at("w").to_host<float>(), source[0].value().to_host<float>());
  target[0].assign(Tensor::zeros({2, 3}));
  EXPECT_TRUE(load_into(target, read.tensors).is_complete());
  EXPECT_THAT(target[0].value().to_host<float>(), testing::Each(2.0f));
}

TEST_F(CheckpointTest, SavingRemovesWhatAKilledProcessLeft) {
  const std::string left = path_ + ".12345-6.tmp", written = path_ + ".12345-7.tmp";
  const std::string other = path_ + ".old.tmp", of_another = path_ + "s.12345-6.tmp";
  for (const std::string& name : {left, written, other, of_another}) std::ofstream(name) << "part";
  const int writer = open(written.c_str(), O_WRONLY);
  ASSERT_EQ(flock(writer, LOCK_EX), 0);
  save_checkpoint(path_, {{"x", Tensor::scalar(3)}});
  EXPECT_FALSE(std::filesystem::exists(left));
  EXPECT_TRUE(std::filesystem::exists(written));  // someone is at it
  EXPECT_TRUE(std::filesystem::exists(other));
  EXPECT_TRUE(std::filesystem::exists(of_another));
  close(writer);
  save_checkpoint(path_, {{"x", Tensor::scalar(4)}});
  EXPECT_FALSE(std::filesystem::exists(written));
  EXPECT_EQ(load_checkpoint(path_).tensors.at("x").item<float>(), 4);
  for (const std::string& name : {other, of_another}) std::filesystem::remove(name);
}

TEST_F(CheckpointTest, TensorsByNameWithoutParameters) {
  const Parameter parameter(Tensor::full({2}, 5), "p");
  save_checkpoint(path_, {{"x", Tensor::scalar(3)}, {"y", parameter}});
  EXPECT_EQ(load_checkpoint(path_).tensors.at("x").item<float>(), 3);
  EXPECT_THAT(load_checkpoint(path_).tensors.at("y").to_host<float>(), ElementsAre(5, 5));
}

TEST_F(CheckpointTest, StrictLoadingChangesNothingUnlessAllFits) {
  save_checkpoint(path_, {{"w", Tensor::ones({3, 2})}, {"extra", Tensor::scalar(1)}});
  const std::vector<Parameter> target = two_parameters(0);
  EXPECT_EQ(message_of([&] { load_into(target, path_); }),
            "[load_into] " + path_ +
                " does not fit: 0 loaded; missing: b; unexpected: extra; mismatched: w is f32[2, "
                "3], the file has f32[3, 2]\n  hint: LoadMode::kPartial loads what fits");
  save_checkpoint(path_, {{"w", Tensor::ones({2, 3})}});
  EXPECT_THAT(message_of([&] { load_into(target, path_); }), HasSubstr("missing: b"));
  EXPECT_THAT(target[0].value().to_host<float>(), testing::Each(0.0f));
}

TEST_F(CheckpointTest, PartialLoadingReportsWhatItLeft) {
  save_checkpoint(path_, {{"w", Tensor::ones({2, 3})}, {"b", Tensor::ones({4})}});
  const std::vector<Parameter> target = two_parameters(0);
  const LoadReport report = load_into(target, path_, LoadMode::kPartial);
  EXPECT_EQ(report.to_string(), "1 loaded; mismatched: b is bf16[4], the file has f32[4]");
  EXPECT_THAT(target[0].value().to_host<float>(), testing::Each(1.0f));
  EXPECT_THAT(target[1].value().to_host<float>(), testing::Each(0.0f));
}

TEST_F(CheckpointTest, ADamagedFileChangesNothing) {
  const std::vector<Parameter> target = {Parameter(Tensor::zeros({2}), "a"),
                                         Parameter(Tensor::zeros({2}, DType::kBool), "b")};
  // The header is in order; the damage shows when b is read, after a.
  save_checkpoint(path_, {{"a", Tensor::ones({2})}, {"b", Tensor::ones({2}, DType::kBool)}});
  std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(-1, std::ios::end);
  file << '\x09';
  file.close();
  EXPECT_THAT(message_of([&] { load_into(target, path_); }), HasSubstr("a BOOL is 9"));
  EXPECT_THAT(target[0].value().to_host<float>(), testing::Each(0.0f));
}

TEST_F(CheckpointTest, NamesAreGivenOnce) {
  StateDict state(two_parameters(0));
  EXPECT_THAT(message_of([&] { state.add("", two_parameters(1)); }),
              HasSubstr("[StateDict] the name \"w\" is given twice"));
}

TEST_F(CheckpointTest, NotWhileAFunctionIsTraced) {
  const std::vector<Parameter> parameters = two_parameters(0);
  auto f = jit([&](Tensor x) {
    save_checkpoint(path_, parameters);
    return x;
  });
  EXPECT_THAT(message_of([&] { f(Tensor::scalar(1)); }),
              HasSubstr("[save_checkpoint] called while a function is traced"));
}

// A model with dropout, trained by Adam: its state is weights, moments, powers and a generator.
struct Model {
  nn::SequentialCell net{nn::Dense(6, 16), nn::ReLU(), nn::Dropout(0.3), nn::Dense(16, 3)};
  nn::Adam optimizer{net.trainable_params(), 0.01f};

  Model() { net.set_train(); }
  StateDict state() const {
    return StateDict(net).add("optimizer.", optimizer).add("generator", default_generator());
  }
  auto step() {
    auto forward = [net = net](const Tensor& x, const Tensor& y) mutable {
      return nn::CrossEntropyLoss()(net(x), y);
    };
    auto gradients = value_and_grad(forward, std::nullopt, optimizer.parameters());
    return [gradients, optimizer = optimizer](const Tensor& x, const Tensor& y) mutable {
      auto [loss, grads] = gradients(x, y);
      return depend(loss, optimizer(grads));
    };
  }
};

enum class How { kEager, kJit, kSink };

class ResumeTest : public CheckpointTest, public testing::WithParamInterface<How> {
 protected:
  static void train(Model& run, int64_t first, int64_t steps) {
    make_batches();
    const Tensor x = part(images_, first, steps), y = part(labels_, first, steps);
    if (GetParam() == How::kSink) {
      sink(jit(run.step()))(static_cast<uint64_t>(steps), each(x), each(y));
      return;
    }
    auto eager = run.step();
    auto compiled = jit(run.step());
    for (int64_t i = 0; i < steps; ++i) {
      const Tensor xi = ops::reshape(part(x, i, 1), {8, 6}), yi = ops::reshape(part(y, i, 1), {8});
      if (GetParam() == How::kEager) {
        eager(xi, yi);
      } else {
        compiled(xi, yi);
      }
    }
  }

  static std::map<std::string, std::vector<uint8_t>> bytes_of(const StateDict& state) {
    std::map<std::string, std::vector<uint8_t>> bytes;
    for (const auto& [name, tensor] : state.tensors()) bytes[name] = tensor.to_host_bytes();
    return bytes;
  }

 private:
  static void make_batches() {
    std::vector<float> pixels;
    std::vector<int32_t> digits;
    for (int i = 0; i < 10 * 8 * 6; ++i) pixels.push_back(std::sin(0.7f * static_cast<float>(i)));
    for (int i = 0; i < 10 * 8; ++i) digits.push_back(i * i % 3);
    images_ = Tensor::from_host(pixels, {10, 8, 6});
    labels_ = Tensor::from_host(digits, {10, 8});
  }
  static Tensor part(const Tensor& all, int64_t first, int64_t count) {
    return ops::strided_slice(all, {first}, {first + count});
  }
  static Tensor images_, labels_;
};
Tensor ResumeTest::images_;
Tensor ResumeTest::labels_;

TEST_P(ResumeTest, ContinuesWithTheSameBits) {
  constexpr int64_t kHalf = 5;
  set_seed(3);
  Model whole;
  train(whole, 0, kHalf);
  save_checkpoint(path_, whole.state());
  const auto half = bytes_of(whole.state());
  train(whole, kHalf, kHalf);
  const auto expected = bytes_of(whole.state());
  EXPECT_NE(expected, half);

  set_seed(99);  // another start: nothing may be left of it
  Model resumed;
  EXPECT_TRUE(load_into(resumed.state(), path_).is_complete());
  EXPECT_EQ(bytes_of(resumed.state()), half);
  train(resumed, kHalf, kHalf);
  EXPECT_EQ(bytes_of(resumed.state()), expected);
}

INSTANTIATE_TEST_SUITE_P(Modes, ResumeTest, testing::Values(How::kEager, How::kJit, How::kSink));

}  // namespace
}  // namespace ballast
