#include "frontend/transforms/grad_cache.h"

#include "frontend/ops/ops.h"
#include "frontend/transforms/vjp.h"

#include <gtest/gtest.h>

namespace ballast {
namespace {

using Floats = std::vector<float>;

Tensor vector_of(const Floats& values) {
  return Tensor::from_host(values, {static_cast<int64_t>(values.size())});
}

// Every function below is traced again by each call; what it captures is a tensor, not a number.
TEST(GradCacheTest, TakesTheTensorsOfEachCall) {
  Tensor batch = vector_of({1, 2});
  auto gradient = grad([&](const Tensor& x) { return ops::sum(x * x * batch); });
  EXPECT_EQ(gradient(vector_of({1, 1})).to_host<float>(), (Floats{2, 4}));
  batch = vector_of({3, 4});
  EXPECT_EQ(gradient(vector_of({1, 1})).to_host<float>(), (Floats{6, 8}));
  EXPECT_EQ(gradient(vector_of({2, 1})).to_host<float>(), (Floats{12, 8}));
}

TEST(GradCacheTest, SeesTwoCapturesBecomeOne) {
  Tensor first = vector_of({1, 2}), second = vector_of({10, 20});
  auto gradient = grad([&](const Tensor& x) { return ops::sum(x * first + x * x * second); });
  EXPECT_EQ(gradient(vector_of({1, 1})).to_host<float>(), (Floats{21, 42}));
  first = second;
  EXPECT_EQ(gradient(vector_of({1, 1})).to_host<float>(), (Floats{30, 60}));
  first = vector_of({3, 4});
  EXPECT_EQ(gradient(vector_of({1, 1})).to_host<float>(), (Floats{23, 44}));
}

TEST(GradCacheTest, SeesNumbersAndBranchesChange) {
  double scale = 2;
  bool squares = false;
  auto gradient = grad([&](const Tensor& x) { return ops::sum((squares ? x * x : x) * scale); });
  for (int round = 0; round < 3; ++round) {
    squares = false;
    EXPECT_EQ(gradient(vector_of({3, 4})).to_host<float>(), (Floats{2, 2}));
    squares = true;
    EXPECT_EQ(gradient(vector_of({3, 4})).to_host<float>(), (Floats{12, 16}));
  }
  scale = 5;
  EXPECT_EQ(gradient(vector_of({3, 4})).to_host<float>(), (Floats{30, 40}));
}

TEST(GradCacheTest, SeesTheArgumentsTypesChange) {
  auto gradient = grad([](const Tensor& x) { return ops::sum(x * x); });
  EXPECT_EQ(gradient(vector_of({3, 4})).to_host<float>(), (Floats{6, 8}));
  EXPECT_EQ(gradient(vector_of({3, 4, 5})).to_host<float>(), (Floats{6, 8, 10}));
  EXPECT_EQ(gradient(vector_of({1, 2})).to_host<float>(), (Floats{2, 4}));
}

TEST(GradCacheTest, ReadsAndAssignsParametersInEveryCall) {
  Parameter weight(vector_of({1, 2}), "weight"), count(Tensor::scalar(0), "count", false);
  auto loss = [&](const Tensor& x) {
    count.assign(count + 1.0f);
    return ops::sum(weight * weight * x);
  };
  auto step = value_and_grad(loss, std::nullopt, {weight});
  for (float i = 1; i <= 3; ++i) {
    auto [value, gradients] = step(vector_of({1, 10}));
    EXPECT_EQ(gradients.at(0).to_host<float>(), (Floats{2 * i, 40 * i}));
    EXPECT_EQ(value.item<float>(), 41 * i * i);
    EXPECT_EQ(count.value().item<float>(), i);
    weight.assign(vector_of({i + 1, 2 * (i + 1)}));
  }
}

TEST(GradCacheTest, KeepsNothingItWasGiven) {
  auto batch = vector_of({1, 2});
  const std::weak_ptr<Buffer> memory = batch.buffer();
  auto gradient = grad([&](const Tensor& x) { return ops::sum(x * batch); });
  gradient(vector_of({1, 1})).sync();
  gradient(vector_of({1, 1})).sync();
  EXPECT_FALSE(memory.expired());
  batch = {};
  EXPECT_TRUE(memory.expired());
}

TEST(GradCacheTest, FindsTheSameEntryForTheSameProgram) {
  internal::GradCache cache;
  const TensorType type{DType::kF32, {2}};
  double number = 1;
  auto traced = [&] {
    return trace(
        [&](const std::vector<Tensor>& in) {
          return std::vector<Tensor>{ops::sum(in[0] * in[1] * number)};
        },
        {type, type});
  };
  const auto first = cache.find(traced(), {0}, {});
  EXPECT_EQ(cache.find(traced(), {0}, {}), first);
  EXPECT_NE(cache.find(traced(), {1}, {}), first);
  EXPECT_EQ(cache.find(traced(), {0}, {}), first);
  for (number = 2; number < 6; ++number) EXPECT_NE(cache.find(traced(), {0}, {}), first);
  number = 1;
  EXPECT_NE(cache.find(traced(), {0}, {}), first);  // forgotten: the cache is bounded
}

}  // namespace
}  // namespace ballast
