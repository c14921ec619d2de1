#include "frontend/tensor/tensor.h"

#include "frontend/modes/jit.h"
#include "frontend/nn/initializer.h"
#include "frontend/nn/layers.h"
#include "frontend/nn/optimizer.h"
#include "frontend/ops/ops.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <set>
#include <thread>

namespace ballast {
namespace {

TEST(TensorTest, RoundTripsEveryElementType) {
  EXPECT_EQ(Tensor::from_host<float>({1.5f, -2}, {2}).to_host<float>(),
            (std::vector<float>{1.5f, -2}));
  EXPECT_EQ(Tensor::from_host<int32_t>({1, -2}, {2, 1}).to_host<int32_t>(),
            (std::vector<int32_t>{1, -2}));
  EXPECT_EQ(Tensor::from_host<int64_t>({1, -(int64_t{1} << 40)}, {2}).to_host<int64_t>()[1],
            -(int64_t{1} << 40));
  EXPECT_EQ(Tensor::from_host<uint8_t>({1, 255}, {2}).to_host<uint8_t>()[1], 255);
  EXPECT_EQ(Tensor::from_host<bool>({true, false}, {2}).to_host<bool>(),
            (std::vector<bool>{true, false}));
  EXPECT_TRUE(Tensor::from_host<float>({}, {0, 3}).to_host<float>().empty());
}

TEST(TensorTest, NarrowFloatsConvertOnTheHost) {
  const std::vector<float> values = {1, -0.0f, 1.00390625f, 1.01171875f, 3e38f, 1e-40f, 70000};
  Tensor bf16 = Tensor::from_host(values, {7}, DType::kBF16);
  EXPECT_EQ(bf16.dtype(), DType::kBF16);
  EXPECT_EQ(bf16.to_host<float>(), ops::cast(bf16, DType::kF32).to_host<float>());
  // Ties go to the even neighbour: 1 + 2^-8 down to 1, 1 + 3 2^-8 up to 1 + 2^-6.
  EXPECT_EQ(bf16.to_host<float>()[2], 1);
  EXPECT_EQ(bf16.to_host<float>()[3], 1.015625f);
  Tensor f16 = Tensor::from_host(values, {7}, DType::kF16);
  EXPECT_EQ(f16.to_host<float>()[6], std::numeric_limits<float>::infinity());
  // Host and device round alike.
  Tensor f32 = Tensor::from_host(values, {7});
  EXPECT_EQ(ops::cast(f32, DType::kBF16).to_host_bytes(), bf16.to_host_bytes());
  EXPECT_EQ(ops::cast(f32, DType::kF16).to_host_bytes(), f16.to_host_bytes());
  EXPECT_EQ((bf16 * 2.0f + 1).dtype(), DType::kBF16);
  EXPECT_EQ(Tensor::full({2}, 0.5, DType::kBF16).to_string(), "bf16[2] [0.5, 0.5]");
}

TEST(TensorTest, IntegersTakeTheNearestNumberThereIs) {
  const auto stored = [](double value, DType dtype) {
    return decode(encode(value, dtype).data(), dtype);
  };
  EXPECT_EQ(stored(300, DType::kU8), 255);
  EXPECT_EQ(stored(-1, DType::kU8), 0);
  EXPECT_EQ(stored(-2.9, DType::kI32), -2);
  EXPECT_EQ(stored(1e30, DType::kI32), 2147483647.0);
  EXPECT_EQ(stored(-INFINITY, DType::kI64), -std::ldexp(1.0, 63));
  EXPECT_EQ(stored(NAN, DType::kI64), 0);
}

TEST(TensorTest, FillsAndPrints) {
  EXPECT_EQ(Tensor::full({2, 2}, 7, DType::kI32).to_string(), "i32[2, 2] [[7, 7], [7, 7]]");
  EXPECT_EQ(Tensor::scalar(0.5).to_string(), "f32[] 0.5");
  EXPECT_EQ(Tensor::ones({2}, DType::kBool).to_host<bool>(), (std::vector<bool>{true, true}));
}

TEST(TensorTest, IntegersPrintAllTheirDigits) {
  EXPECT_EQ(Tensor::from_host<int32_t>({1234567, -1}, {2}).to_string(), "i32[2] [1234567, -1]");
  EXPECT_EQ(Tensor::from_host<int64_t>({9007199254740993}, {1}).to_string(),
            "i64[1] [9007199254740993]");
}

TEST(TensorTest, WholeNumbersBesideIntegersAreExact) {
  const int64_t large = 9007199254740993;  // 2^53 + 1
  const Tensor x = Tensor::from_host<int64_t>({large, large - 1}, {2});
  EXPECT_EQ(ops::equal(x, large).to_host<bool>(), (std::vector<bool>{true, false}));
  EXPECT_EQ((x - large).to_host<int64_t>(), (std::vector<int64_t>{0, -1}));
  EXPECT_EQ((x + uint64_t{1}).to_host<int64_t>()[0], large + 1);
  EXPECT_THROW(x + ~uint64_t{0}, Error);
  EXPECT_EQ((Tensor::ones({1}, DType::kU8) + 254).to_host<uint8_t>()[0], 255);
  EXPECT_THROW(Tensor::ones({1}, DType::kU8) * -1, Error);
  EXPECT_THROW(Tensor::ones({1}, DType::kI32) + int64_t{3000000000}, Error);
}

TEST(TensorTest, NumbersTakeTheDtypeOfTheTensorBesideThem) {
  Tensor whole = Tensor::from_host<int32_t>({1, 2}, {2});
  EXPECT_EQ((whole + 1).to_host<int32_t>(), (std::vector<int32_t>{2, 3}));
  EXPECT_EQ((2.0f / Tensor::from_host<float>({4, 8}, {2})).to_host<float>(),
            (std::vector<float>{0.5f, 0.25f}));
}

TEST(TensorTest, ActivationsAndChecks) {
  Tensor x = Tensor::from_host<float>({-8, -3, -1.5f, 0, 1.5f, 3, 8}, {7});
  EXPECT_EQ(ops::relu6(x).to_host<float>(), (std::vector<float>{0, 0, 0, 0, 1.5f, 3, 6}));
  EXPECT_EQ(ops::hard_sigmoid(x).to_host<float>(),
            (std::vector<float>{0, 0, 0.25f, 0.5f, 0.75f, 1, 1}));
  EXPECT_EQ(ops::hard_swish(x).to_host<float>(),
            (std::vector<float>{0, 0, -0.375f, 0, 1.125f, 3, 8}));
  EXPECT_EQ(ops::clip(x, -1.0f, 2.0f).to_host<float>(),
            (std::vector<float>{-1, -1, -1, 0, 1.5f, 2, 2}));
  EXPECT_EQ(ops::leaky_relu(x, 0.5).to_host<float>()[0], -4);
  EXPECT_NEAR(ops::elu(x).to_host<float>()[1], std::expm1(-3.0), 1e-6);
  EXPECT_TRUE(ops::all_finite(x).item<bool>());
  EXPECT_FALSE(ops::all_finite(x / 0.0f).item<bool>());
}

TEST(TensorTest, ReshapeSharesMemoryAndFindsTheOpenExtent) {
  Tensor x = Tensor::ones({4, 6});
  Tensor y = ops::reshape(x, {-1, 8});
  EXPECT_EQ(y.shape(), (Shape{3, 8}));
  EXPECT_EQ(y.buffer(), x.buffer());
}

void on_threads(const std::function<void(int)>& work) {
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) threads.emplace_back(work, thread);
  for (std::thread& thread : threads) thread.join();
}

// Ops, jitted calls and releases from several threads at once, over one device and one stream.
TEST(TensorTest, ThreadsComputeSideBySide) {
  auto square_sum = jit([](const Tensor& x) { return ops::sum(x * x); });
  const auto work = [&](int thread) {
    for (int round = 0; round < 20; ++round) {
      const auto value = static_cast<float>(thread * 20 + round);
      Tensor x = Tensor::from_host<float>(std::vector<float>(257, value), {257});
      EXPECT_EQ(ops::sum(x * x).item<float>(), 257 * value * value);
      EXPECT_EQ(square_sum(x).item<float>(), 257 * value * value);
      EXPECT_EQ(ops::reduce_max(x + static_cast<float>(round)).item<float>(), value + round);
    }
  };
  on_threads(work);
}

TEST(TensorTest, NoTwoThreadsDrawTheSameNumbers) {
  Generator generator(7);
  constexpr int kDraws = 50;
  std::vector<std::vector<int64_t>> offsets(4);
  on_threads([&](int thread) {
    for (int i = 0; i < kDraws; ++i) {
      offsets[static_cast<size_t>(thread)].push_back(generator.next(4).to_host<int64_t>()[1]);
    }
  });
  std::set<int64_t> distinct;
  for (const auto& drawn : offsets) distinct.insert(drawn.begin(), drawn.end());
  EXPECT_EQ(distinct.size(), 4u * kDraws);
}

// Thread 0 updates the parameter in place, the others read it and assign another one.
TEST(ParameterTest, IsReadWhileAJittedStepUpdatesIt) {
  constexpr int kSteps = 200;
  Parameter w(Tensor::zeros({64}), "w"), bias(Tensor::zeros({64}), "bias");
  auto step = jit([&](const Tensor& x) {
    w.assign(w + x);
    return ops::sum(bias);
  });
  on_threads([&](int thread) {
    for (int i = 0; i < kSteps; ++i) {
      if (thread == 0) {
        step(Tensor::scalar(1));
        continue;
      }
      const Tensor value = w.value();
      const std::vector<float> first = value.to_host<float>();
      EXPECT_EQ(first, std::vector<float>(64, first[0]));
      bias.assign(Tensor::full({64}, first[0]));
      EXPECT_EQ(value.to_host<float>(), first);  // it is immutable
    }
  });
  EXPECT_EQ(w.value().to_host<float>(), std::vector<float>(64, kSteps));
}

TEST(InitializerTest, FollowsFromTheSeed) {
  set_seed(5);
  Tensor a = nn::uniform({100}, -2, 3);
  set_seed(5);
  Tensor b = nn::uniform({100}, -2, 3);
  EXPECT_EQ(a.to_host<float>(), b.to_host<float>());
  EXPECT_NE(nn::uniform({100}, -2, 3).to_host<float>(), b.to_host<float>());
  for (float value : a.to_host<float>()) {
    EXPECT_GE(value, -2);
    EXPECT_LT(value, 3);
  }
}

TEST(CellTest, NamesParametersByPathAndSharesThem) {
  nn::SequentialCell net(nn::Dense(3, 2), nn::ReLU(), nn::Dense(2, 1, /*has_bias=*/false));
  std::vector<std::string> names;
  for (const Parameter& parameter : net.trainable_params()) names.push_back(parameter.name());
  EXPECT_EQ(names, (std::vector<std::string>{"0.weight", "0.bias", "2.weight"}));
  EXPECT_EQ(net.parameters()[0].shape(), (Shape{2, 3}));
  nn::SequentialCell copy = net;
  copy.set_train();
  EXPECT_TRUE(net.is_training());
  EXPECT_TRUE(copy.parameters()[0] == net.parameters()[0]);
}

TEST(OptimizerTest, MomentumFollowsItsFormula) {
  Parameter w(Tensor::from_host<float>({1}, {1}), "w");
  nn::Momentum optimizer({w}, 0.5f, 0.5f);
  Tensor g = Tensor::from_host<float>({2}, {1});
  optimizer({g});  // accum 2, w 0
  EXPECT_EQ(w.value().item<float>(), 0);
  optimizer({g});  // accum 3, w -1.5
  EXPECT_EQ(w.value().item<float>(), -1.5f);
  optimizer.set_learning_rate(1);
  optimizer({g});  // accum 3.5, w -5
  EXPECT_EQ(w.value().item<float>(), -5);
  EXPECT_EQ(optimizer.states().size(), 2u);
}

TEST(OptimizerTest, SgdDecaysWeights) {
  Parameter w(Tensor::from_host<float>({4}, {1}), "w");
  nn::SGD optimizer({w}, 0.5f, 0, 0, /*weight_decay=*/0.25f);
  optimizer({Tensor::from_host<float>({2}, {1})});
  EXPECT_EQ(w.value().item<float>(), 4 - 0.5f * (2 + 0.25f * 4));
  EXPECT_THROW(optimizer({}), Error);
}

}  // namespace
}  // namespace ballast
