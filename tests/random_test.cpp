// Random numbers through the frontend: one sequence in every mode, fresh numbers at every step, and
// dropout whose gradient draws the mask that the forward pass drew.
#include "frontend/ballast_frontend.h"
#include "frontend/test_support.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <set>

namespace ballast::tests {
namespace {

using testing::HasSubstr;

constexpr uint64_t kSteps = 5;

// Two draws per step, of sizes that do not fill their last block.
std::vector<float> draw_step(Generator& generator, const Tensor& shift) {
  Tensor sum = ops::random_normal({7}, 0, 1, generator) + shift;
  return (sum * ops::random_uniform({7}, -1, 1, generator)).to_host<float>();
}

TEST(GeneratorTest, EagerJitAndSinkDrawTheSameNumbers) {
  Generator eager(11), jitted(11), sunk(11);
  const Tensor shift = Tensor::from_host<float>({1}, {1});
  auto step = [](Generator& generator) {
    return [generator](Tensor x) mutable {
      Tensor sum = ops::random_normal({7}, 0, 1, generator) + x;
      return sum * ops::random_uniform({7}, -1, 1, generator);
    };
  };
  std::vector<float> expected;
  std::set<std::vector<float>> distinct;
  for (uint64_t i = 0; i < kSteps; ++i) {
    const std::vector<float> values = draw_step(eager, shift);
    expected.insert(expected.end(), values.begin(), values.end());
    distinct.insert(values);
  }
  EXPECT_EQ(distinct.size(), kSteps);

  auto compiled = jit(step(jitted), at(JitLevel::kO0));
  std::vector<float> got;
  for (uint64_t i = 0; i < kSteps; ++i) {
    for (float value : compiled(shift).to_host<float>()) got.push_back(value);
  }
  EXPECT_EQ(got, expected);
  EXPECT_EQ(compiled.compile_count(), 1u);
  EXPECT_EQ(sink(jit(step(sunk), at(JitLevel::kO0)))(kSteps, repeat(shift)).to_host<float>(),
            expected);
  EXPECT_EQ(jitted.state().to_host<int64_t>(), eager.state().to_host<int64_t>());
  EXPECT_EQ(sunk.state().to_host<int64_t>(), eager.state().to_host<int64_t>());
}

TEST(GeneratorTest, TheNumbersAreThoseOfTheKey) {
  Generator generator(5);
  generator.next(9);  // three blocks
  const Tensor key = Tensor::from_host<int64_t>({5, 3}, {2});
  EXPECT_EQ(ops::random_uniform({3, 5}, 0, 1, generator).to_host<float>(),
            ops::random_uniform(key, {3, 5}).to_host<float>());
  EXPECT_EQ(generator.state().to_host<int64_t>(), (std::vector<int64_t>{5, 7}));
}

TEST(GeneratorTest, SeedsAndStatesRestartIt) {
  Generator generator(1);
  const auto first = ops::random_uniform({6}, 0, 1, generator).to_host<float>();
  const Tensor saved = generator.state();
  const auto second = ops::random_uniform({6}, 0, 1, generator).to_host<float>();
  EXPECT_NE(first, second);
  generator.set_state(saved);
  EXPECT_EQ(ops::random_uniform({6}, 0, 1, generator).to_host<float>(), second);
  generator.set_seed(1);
  EXPECT_EQ(ops::random_uniform({6}, 0, 1, generator).to_host<float>(), first);
  Generator copy = generator;  // shares the state
  EXPECT_EQ(ops::random_uniform({6}, 0, 1, copy).to_host<float>(), second);

  set_seed(9);
  const auto drawn = ops::randint({20}, -4, 4).to_host<int32_t>();
  set_seed(9);
  EXPECT_EQ(ops::randint({20}, -4, 4).to_host<int32_t>(), drawn);
}

TEST(GeneratorTest, PermutationsHoldEveryNumber) {
  Generator generator(2);
  std::vector<int32_t> all(37);
  std::iota(all.begin(), all.end(), 0);
  const auto a = ops::random_permutation(37, generator).to_host<int32_t>();
  const auto b = ops::random_permutation(37, generator).to_host<int32_t>();
  EXPECT_THAT(a, testing::UnorderedElementsAreArray(all));
  EXPECT_THAT(b, testing::UnorderedElementsAreArray(all));
  EXPECT_NE(a, b);
}

TEST(DropoutTest, TheGradientUsesTheMaskOfTheForwardPass) {
  Generator generator(3);
  const Tensor x = Tensor::ones({1000});
  auto f = [&](Tensor in) {
    Tensor y = ops::dropout(in, 0.25, generator);
    return std::tuple(ops::sum(y), y);
  };
  for (int i = 0; i < 2; ++i) {
    auto [value, gradient] = value_and_grad(f, 0, /*has_aux=*/true)(x);
    const auto y = std::get<1>(value).to_host<float>();
    EXPECT_EQ(gradient.to_host<float>(), y);
    EXPECT_NEAR(std::accumulate(y.begin(), y.end(), 0.0), 1000, 80);
  }
  EXPECT_EQ(generator.state().to_host<int64_t>()[1], 500);
}

TEST(DropoutTest, TheMaskIsBernoullis) {
  const Tensor key = Tensor::from_host<int64_t>({8, 2}, {2});
  const auto both = ops::dropout_with_mask(Tensor::ones({3, 11}), key, 0.5);
  std::vector<bool> is_kept;
  for (float value : both[0].to_host<float>()) is_kept.push_back(value != 0);
  EXPECT_EQ(both[1].to_host<bool>(), is_kept);
}

TEST(DropoutTest, ACellDropsOnlyInTraining) {
  set_seed(4);
  nn::Dropout dropout(0.5);
  const Tensor x = Tensor::ones({200});
  EXPECT_EQ(dropout(x).to_host<float>(), x.to_host<float>());
  dropout.set_train();
  std::set<float> values;
  for (float value : dropout(x).to_host<float>()) values.insert(value);
  EXPECT_EQ(values, (std::set<float>{0, 2}));
}

TEST(DropoutTest, OfNothingAndOfEverythingDrawsNothing) {
  Generator generator(3);
  const auto before = generator.state().to_host<int64_t>();
  const Tensor x = Tensor::from_host<float>({1, NAN, -2}, {3});
  EXPECT_EQ(ops::dropout(x, 0, generator).to_host<float>()[2], -2);
  EXPECT_EQ(ops::dropout(x, 1, generator).to_host<float>(), (std::vector<float>{0, 0, 0}));
  EXPECT_EQ(generator.state().to_host<int64_t>(), before);
  const auto total = [&](Tensor t) { return ops::sum(t + ops::dropout(t, 1, generator)); };
  EXPECT_EQ(grad(total)(x).to_host<float>(), (std::vector<float>{1, 1, 1}));
}

TEST(RandomErrorsTest, NameWhatWasGiven) {
  const Tensor key = Tensor::from_host<int64_t>({1, 2}, {2});
  EXPECT_THAT(message_of([&] { ops::random_uniform(Tensor::ones({2}), {3}); }),
              HasSubstr("[random_uniform] the key (input 0) needs i64[2]: seed, offset; inputs are "
                        "f32[2]"));
  EXPECT_THAT(message_of([&] { ops::random_uniform(key, {3}, 1, 1); }),
              HasSubstr("low is 1 and high 1, expected low < high"));
  EXPECT_THAT(message_of([&] { ops::random_uniform(key, {3}, -3e38, 3e38); }),
              HasSubstr("a finite range"));
  EXPECT_THAT(message_of([&] { ops::random_normal(key, {3}, 0, -1); }),
              HasSubstr("attribute stddev is -1, expected it not negative"));
  EXPECT_THAT(message_of([&] { ops::random_normal(key, {3}, NAN); }),
              HasSubstr("attribute mean is nan, expected a finite f32"));
  EXPECT_THAT(message_of([&] { ops::randint(key, {3}, 4, 4); }),
              HasSubstr("low is 4 and high 4, expected i32 values with low < high"));
  EXPECT_THAT(message_of([&] { ops::bernoulli(key, {3}, 1.5); }),
              HasSubstr("attribute p is 1.5, expected it in [0, 1]"));
  EXPECT_THAT(message_of([&] { ops::dropout_with(Tensor::ones({3}), key, 0); }),
              HasSubstr("attribute keep_prob is 0, expected it in (0, 1]"));
  EXPECT_THAT(message_of([&] { ops::random_permutation(key, -1); }),
              HasSubstr("n is -1, expected it in [0, 2^31)"));
  EXPECT_THAT(message_of([&] { ops::random_uniform(key, {-1}); }),
              HasSubstr("has a negative extent"));
}

}  // namespace
}  // namespace ballast::tests
