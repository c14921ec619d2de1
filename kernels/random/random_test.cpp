#include "kernels/test_support.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>

namespace ballast::kernels::testing {
namespace {

using Block = std::array<uint32_t, 4>;

// Philox4x32-10 as in the paper's figures, one block at a time.
Block philox(Block counter, uint32_t key0, uint32_t key1) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xd2511f53} * counter[0], b = uint64_t{0xcd9e8d57} * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ key0, static_cast<uint32_t>(b),
               static_cast<uint32_t>(a >> 32) ^ counter[3] ^ key1, static_cast<uint32_t>(a)};
    key0 += 0x9e3779b9;
    key1 += 0xbb67ae85;
  }
  return counter;
}

struct State {
  int64_t seed, offset, stream;
};

uint32_t word(const State& state, int64_t i) {
  const auto low = [](int64_t v) { return static_cast<uint32_t>(v); };
  const auto high = [](int64_t v) { return static_cast<uint32_t>(static_cast<uint64_t>(v) >> 32); };
  const auto at =
      static_cast<int64_t>(static_cast<uint64_t>(state.offset) + static_cast<uint64_t>(i / 4));
  return philox({low(at), high(at), low(state.stream), high(state.stream)}, low(state.seed),
                high(state.seed))[i % 4];
}

HostTensor key_of(const State& state) {
  return {DType::kI64, {2}, std::vector<int64_t>{state.seed, state.offset}};
}

TensorType row(DType dtype, int64_t n) { return {dtype, {n}}; }

std::vector<float> floats(const Plan& plan, const State& state, int64_t n) {
  return run_plan(plan, {key_of(state)}, row(DType::kF32, n)).as<float>();
}

const int64_t kSizes[] = {0,   1,   2,   3,   4,   5,   7,    63,   64,   65,
                          127, 128, 129, 131, 255, 257, 1000, 8191, 8192, 100003};
const State kStates[] = {
    {0, 0, 0},
    {42, 7, 0},
    {-1, -1, -1},
    {0x123456789abcdef, 0xffffffff, 3},  // the offset's carry goes into the second word
    {5, 0x7ffffffffffffff0, int64_t{1} << 40}};

// The simulator looks for accesses out of bounds and races, which no key changes.
std::vector<State> states() {
  if (is_simulated()) return {kStates[3]};
  return {std::begin(kStates), std::end(kStates)};
}
std::vector<int64_t> sizes() {
  if (is_simulated()) return {0, 1, 5, 65};
  return {std::begin(kSizes), std::end(kSizes)};
}

// Salmon et al.'s known answers (Random123's kat_vectors).
TEST(Random, PhiloxGivesTheKnownAnswers) {
  EXPECT_EQ(philox({0, 0, 0, 0}, 0, 0), (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({~0u, ~0u, ~0u, ~0u}, ~0u, ~0u),
            (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, 0xa4093822, 0x299f31d0),
            (Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
  const std::pair<State, Block> rows[] = {
      {{0, 0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
      {{-1, -1, -1}, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
      {{0x299f31d0a4093822, static_cast<int64_t>(0x85a308d3243f6a88u), 0x0370734413198a2e},
       {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}};
  for (DeviceClass c : device_classes()) {
    for (const auto& [state, want] : rows) {
      const auto got =
          run_plan(plan_random_bits(c, 4, state.stream), {key_of(state)}, row(DType::kI32, 4))
              .as<uint32_t>();
      EXPECT_EQ(got, std::vector<uint32_t>(want.begin(), want.end())) << class_name(c);
    }
  }
}

TEST(Random, BitsAreThoseOfTheDefinition) {
  for (const State& state : states()) {
    for (int64_t n : sizes()) {
      std::vector<uint32_t> want;
      for (int64_t i = 0; i < n; ++i) want.push_back(word(state, i));
      for (DeviceClass c : device_classes()) {
        EXPECT_EQ(
            run_plan(plan_random_bits(c, n, state.stream), {key_of(state)}, row(DType::kI32, n))
                .as<uint32_t>(),
            want)
            << class_name(c) << " " << n;
      }
    }
  }
}

TEST(Random, IntegersCoverTheirRangeOnly) {
  constexpr auto kMin = std::numeric_limits<int32_t>::min(),
                 kMax = std::numeric_limits<int32_t>::max();
  const std::pair<int32_t, int32_t> ranges[] = {
      {0, 1}, {0, 10}, {-3, 4}, {kMin, kMax}, {kMax - 1, kMax}};
  const State state = kStates[1];
  for (int64_t n : sizes()) {
    for (auto [low, high] : ranges) {
      std::vector<int32_t> want;
      for (int64_t i = 0; i < n; ++i) {
        const uint64_t count = static_cast<uint64_t>(int64_t{high} - low);
        want.push_back(
            static_cast<int32_t>(low + static_cast<int64_t>(word(state, i) * count >> 32)));
      }
      for (DeviceClass c : device_classes()) {
        EXPECT_EQ(
            run_plan(plan_random_integers(c, n, 0, low, high), {key_of(state)}, row(DType::kI32, n))
                .as<int32_t>(),
            want)
            << class_name(c) << " " << low << " " << high;
      }
    }
  }
}

TEST(Random, UniformIsTheDocumentedMap) {
  const std::pair<float, float> ranges[] = {
      {0, 1}, {-1, 1}, {2, 3}, {1, 1.0000002f}, {-1e30f, 1e30f}};
  const State state = kStates[3];
  for (int64_t n : sizes()) {
    std::vector<uint32_t> words;
    for (int64_t i = 0; i < n; ++i) words.push_back(word(state, i));
    for (auto [low, high] : ranges) {
      for (DeviceClass c : device_classes()) {
        const auto got = floats(plan_random_uniform(c, n, state.stream, low, high), state, n);
        for (int64_t i = 0; i < n; ++i) {
          const float u = static_cast<float>(words[i] >> 8) * 0x1p-24f;
          const float want = std::min(std::fma(u, high - low, low), std::nextafterf(high, low));
          ASSERT_EQ(got[i], want) << class_name(c) << " " << i;
          ASSERT_TRUE(low <= got[i] && got[i] < high);
        }
      }
    }
  }
}

TEST(Random, NormalIsBoxAndMullers) {
  for (const State& state : states()) {
    for (int64_t n : sizes()) {
      if (n > 20000 && state.seed != 42) continue;  // the reference takes longer than the kernel
      const auto cpu =
          floats(plan_random_normal(DeviceClass::kCpu, n, state.stream, 0, 1), state, n);
      for (int64_t i = 0; i < n; ++i) {
        const double u = (word(state, i & ~1) + 0.5) * 0x1p-32,
                     radius = std::sqrt(-2 * std::log(u));
        const double angle = 2 * M_PI * (word(state, i | 1) * 0x1p-32);
        ASSERT_NEAR(cpu[i], radius * (i % 2 == 0 ? std::cos(angle) : std::sin(angle)), 1e-6) << i;
      }
      EXPECT_EQ(floats(plan_random_normal(DeviceClass::kGpu, n, state.stream, 0, 1), state, n),
                cpu);
      const auto moved =
          floats(plan_random_normal(DeviceClass::kCpu, n, state.stream, 3, 0.5f), state, n);
      for (int64_t i = 0; i < n; ++i) ASSERT_EQ(moved[i], std::fma(cpu[i], 0.5f, 3.0f));
    }
  }
}

// erf^-1 by bisection.
double inverse_erf(double y) {
  double low = -6, high = 6;
  for (int step = 0; step < 80; ++step) {
    const double middle = (low + high) / 2;
    (std::erf(middle) < y ? low : high) = middle;
  }
  return low;
}

TEST(Random, TruncatedNormalIsTheInverseDistribution) {
  const State state = kStates[2];
  for (int64_t n : sizes()) {
    const auto cpu =
        floats(plan_truncated_normal(DeviceClass::kCpu, n, state.stream, 0, 1), state, n);
    for (int64_t i = 0; i < n; ++i) {
      const double u = ((word(state, i) >> 8) + 0.5) * 0x1p-24;
      const double want = M_SQRT2 * inverse_erf((2 * u - 1) * std::erf(M_SQRT2));
      ASSERT_NEAR(cpu[i], want, 2e-6) << i;
      ASSERT_LE(std::fabs(cpu[i]), 2);
    }
    EXPECT_EQ(floats(plan_truncated_normal(DeviceClass::kGpu, n, state.stream, 0, 1), state, n),
              cpu);
  }
}

TEST(Random, BernoulliComparesTheUniform) {
  const State state = kStates[1];
  for (int64_t n : sizes()) {
    for (double p : {0.0, 0.25, 0.3, 0.999, 1.0}) {
      std::vector<uint8_t> want;
      for (int64_t i = 0; i < n; ++i) want.push_back((word(state, i) >> 8) * 0x1p-24 < p);
      const HostTensor key = key_of(state);
      const HostTensor each = f32({n}, std::vector<float>(n, static_cast<float>(p)));
      for (DeviceClass c : device_classes()) {
        EXPECT_EQ(run_plan(plan_bernoulli(c, n, 0, p), {key}, row(DType::kBool, n)).bytes, want);
        if (p == 0.3) continue;  // rounded to f32 it is another number
        EXPECT_EQ(run_plan(plan_bernoulli_tensor(c, n, 0), {key, each}, row(DType::kBool, n)).bytes,
                  want);
      }
    }
  }
  const HostTensor odd = f32({4}, {NAN, INFINITY, -INFINITY, -0.0f});
  for (DeviceClass c : device_classes()) {
    EXPECT_EQ(
        run_plan(plan_bernoulli_tensor(c, 4, 0), {key_of(state), odd}, row(DType::kBool, 4)).bytes,
        (std::vector<uint8_t>{0, 1, 0, 0}));
  }
}

TEST(Random, DropoutKeepsAndScales) {
  const State state = kStates[4];
  for (int64_t n : sizes()) {
    auto in = random_f32({n}, 11).as<float>();
    if (n > 4) in[1] = NAN, in[2] = INFINITY;
    const HostTensor x = f32({n}, in);
    for (double keep : {1.0, 0.9, 0.5, 0.125}) {
      for (DeviceClass c : device_classes()) {
        for (int target : {-1, 0}) {
          const auto got =
              run_plan(plan_dropout(c, n, state.stream, keep), {x, key_of(state)}, x.type, target)
                  .as<float>();
          for (int64_t i = 0; i < n; ++i) {
            const bool is_kept = (word(state, i) >> 8) * 0x1p-24 < keep;
            const float want = is_kept ? in[i] * static_cast<float>(1 / keep) : 0.0f;
            ASSERT_TRUE(got[i] == want || (std::isnan(got[i]) && std::isnan(want))) << i;
          }
        }
      }
    }
  }
}

// Buckets, then Fisher and Yates' shuffle of each, one number at a time.
std::vector<int32_t> shuffled(const State& state, int64_t n) {
  const uint32_t key0 = word(state, 0), key1 = word(state, 1);
  const auto draw = [&](uint32_t step, int64_t i, int64_t count) {
    const auto block = static_cast<uint32_t>(i / 64 * 16 + i % 16);
    const uint64_t drawn = philox({block, 0, step, 0}, key0, key1)[i % 64 / 16];
    return static_cast<int64_t>(drawn * static_cast<uint64_t>(count) >> 32);
  };
  std::vector<std::vector<int32_t>> buckets(permutation_buckets(n));
  for (int64_t i = 0; i < n; ++i) {
    buckets[draw(0, i, permutation_buckets(n))].push_back(static_cast<int32_t>(i));
  }
  std::vector<int32_t> result;
  for (const std::vector<int32_t>& bucket : buckets) {
    const auto begin = static_cast<int64_t>(result.size());
    for (int32_t number : bucket) {
      const auto i = static_cast<int64_t>(result.size());
      const int64_t other = begin + draw(1, i, i - begin + 1);
      result.push_back(number);
      std::swap(result[i], result[other]);
    }
  }
  return result;
}

std::vector<int32_t> permutation(DeviceClass c, const State& state, int64_t n) {
  return run_plan(plan_random_permutation(c, n, state.stream), {key_of(state)}, row(DType::kI32, n))
      .as<int32_t>();
}

TEST(Random, PermutationIsOneAndFollowsTheDefinition) {
  for (int64_t n : {0, 1, 2, 3, 5, 16, 17, 64, 65, 100, 1009, 2048, 2049, 4000, 100003, 2100003}) {
    if (is_too_large(2 * n)) continue;
    const State& state = kStates[n % 5];
    const auto got = permutation(DeviceClass::kCpu, state, n);
    EXPECT_EQ(got, shuffled(state, n)) << n;
    EXPECT_EQ(got, permutation(DeviceClass::kGpu, state, n)) << n;
    auto sorted = got;
    std::sort(sorted.begin(), sorted.end());
    for (int64_t i = 0; i < n; ++i) ASSERT_EQ(sorted[i], i) << n;
  }
}

TEST(Random, AdvanceAddsToTheOffset) {
  for (int64_t blocks :
       {int64_t{0}, int64_t{1}, int64_t{-1}, int64_t{0xffffffff}, int64_t{1} << 40}) {
    for (const State& state : states()) {
      const auto sum =
          static_cast<int64_t>(static_cast<uint64_t>(state.offset) + static_cast<uint64_t>(blocks));
      for (DeviceClass c : device_classes()) {
        for (int target : {-1, 0}) {
          EXPECT_EQ(
              run_plan(plan_random_advance(c, blocks), {key_of(state)}, row(DType::kI64, 2), target)
                  .as<int64_t>(),
              (std::vector<int64_t>{state.seed, sum}));
        }
      }
    }
  }
}

// ---- statistics, of fixed seeds: a failure is a fault, never bad luck

double chi_square(const std::vector<double>& counts, const std::vector<double>& expected) {
  double sum = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    sum += (counts[i] - expected[i]) * (counts[i] - expected[i]) / expected[i];
  }
  return sum;
}
// Some four standard deviations above the mean of chi-square.
double bound(size_t cells) {
  const auto freedom = static_cast<double>(cells - 1);
  return freedom + 4 * std::sqrt(2 * freedom);
}

constexpr int64_t kMany = 400000;

// Shares of 64 cells of equal probability, and no correlation between neighbours.
void expect_distributed(const std::vector<float>& values,
                        const std::function<double(double)>& cdf) {
  constexpr size_t kCells = 64;
  std::vector<double> counts(kCells), pairs(kCells);
  size_t previous = 0;
  for (float value : values) {
    const auto cell = static_cast<size_t>(std::clamp(cdf(value) * kCells, 0.0, kCells - 1.0));
    ++counts[cell];
    ++pairs[(previous / 8) * 8 + cell / 8];
    previous = cell;
  }
  const std::vector<double> expected(kCells, static_cast<double>(values.size()) / kCells);
  EXPECT_LT(chi_square(counts, expected), bound(kCells));
  EXPECT_LT(chi_square(pairs, expected), bound(kCells));
}

std::pair<double, double> moments(const std::vector<float>& values) {
  double mean = 0, square = 0;
  for (float v : values) {
    mean += v;
    square += double{v} * v;
  }
  mean /= static_cast<double>(values.size());
  return {mean, square / static_cast<double>(values.size()) - mean * mean};
}

double normal_cdf(double x) { return 0.5 * std::erfc(-x * M_SQRT1_2); }

TEST(RandomStatistics, UniformNormalTruncated) {
  const double error = 4 / std::sqrt(static_cast<double>(kMany));
  for (const State& state : {kStates[0], kStates[1]}) {
    const auto uniform =
        floats(plan_random_uniform(DeviceClass::kCpu, kMany, 0, 0, 1), state, kMany);
    expect_distributed(uniform, [](double x) { return x; });
    EXPECT_NEAR(moments(uniform).first, 0.5, 0.29 * error);
    EXPECT_NEAR(moments(uniform).second, 1.0 / 12, 0.08 * error);

    const auto normal = floats(plan_random_normal(DeviceClass::kCpu, kMany, 0, 0, 1), state, kMany);
    expect_distributed(normal, normal_cdf);
    EXPECT_NEAR(moments(normal).first, 0, error);
    EXPECT_NEAR(moments(normal).second, 1, 1.5 * error);

    const auto truncated =
        floats(plan_truncated_normal(DeviceClass::kCpu, kMany, 0, 0, 1), state, kMany);
    const double left = normal_cdf(-2), mass = 1 - 2 * left;
    expect_distributed(truncated, [&](double x) { return (normal_cdf(x) - left) / mass; });
    EXPECT_NEAR(moments(truncated).second, 0.77374, 1.5 * error);
  }
}

TEST(RandomStatistics, DropoutKeepsItsShare) {
  const HostTensor ones = f32({kMany}, std::vector<float>(kMany, 1.0f));
  const auto y = run_plan(plan_dropout(DeviceClass::kCpu, kMany, 0, 0.8),
                          {ones, key_of(kStates[1])}, ones.type)
                     .as<float>();
  EXPECT_NEAR(moments(y).first, 1, 4 * 0.5 / std::sqrt(static_cast<double>(kMany)));
}

// All permutations of four, and where each of 24 numbers goes.
TEST(RandomStatistics, PermutationsAreEquallyLikely) {
  std::map<std::vector<int32_t>, double> counts;
  std::vector<double> places(24 * 24);
  constexpr int kDraws = 1200;
  for (int64_t i = 0; i < kDraws; ++i) {
    ++counts[permutation(DeviceClass::kCpu, {1, i, 0}, 4)];
    const auto long_one = permutation(DeviceClass::kCpu, {2, i, 0}, 24);
    for (size_t k = 0; k < 24; ++k) ++places[k * 24 + long_one[k]];
  }
  std::vector<double> found;
  for (const auto& [order, count] : counts) found.push_back(count);
  ASSERT_EQ(found.size(), 24u);
  EXPECT_LT(chi_square(found, std::vector<double>(24, kDraws / 24.0)), bound(24));
  EXPECT_LT(chi_square(places, std::vector<double>(24 * 24, kDraws / 24.0)), bound(23 * 23 + 1));
}

}  // namespace
}  // namespace ballast::kernels::testing
