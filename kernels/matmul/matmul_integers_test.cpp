// Products of integers, which are exact.
#include "kernels/test_support.h"

#include <array>

namespace ballast::kernels::testing {
namespace {

// Of any numbers, so that sums wrap; a batch in which A repeats.
template <class T>
void expect_integers(DeviceClass device_class, DType dtype, MatmulConfig c) {
  constexpr int64_t kBatch = 2;
  c.dtype = dtype;
  c.batch = {{kBatch, 0, c.k * c.n, c.m * c.n}};
  std::mt19937_64 engine(5);
  const auto numbers = [&](int64_t count) {
    std::vector<T> values(count);
    for (T& value : values) value = static_cast<T>(engine());
    return values;
  };
  const std::vector<T> a = numbers(c.m * c.k), b = numbers(kBatch * c.k * c.n);
  std::vector<T> expected;
  for (int64_t i = 0; i < kBatch * c.m * c.n; ++i) {
    const int64_t row = i / c.n % c.m, column = i % c.n, first = i / (c.m * c.n) * c.k * c.n;
    uint64_t sum = 0;
    for (int64_t k = 0; k < c.k; ++k) {
      const T x = a[c.transpose_a ? k * c.m + row : row * c.k + k];
      const T y = b[first + (c.transpose_b ? column * c.k + k : k * c.n + column)];
      sum += static_cast<uint64_t>(x) * static_cast<uint64_t>(y);
    }
    expected.push_back(static_cast<T>(sum));
  }
  const TensorType type{dtype, {kBatch, c.m, c.n}};
  const HostTensor got = run_plan(
      plan_matmul(device_class, c),
      {HostTensor(dtype, {c.m * c.k}, a), HostTensor(dtype, {kBatch * c.k * c.n}, b)}, type);
  EXPECT_EQ(got.as<T>(), expected)
      << fmt::format("{} {} {}x{}x{}{}{}", class_name(device_class), name_of(dtype), c.m, c.n, c.k,
                     c.transpose_a ? " A'" : "", c.transpose_b ? " B'" : "");
}

// One and many elements, edges of tiles, primes, sums of nothing.
const std::array<int64_t, 3> kSizes[] = {
    {1, 1, 1},    {1, 1, 0},    {3, 5, 0},  {7, 13, 11}, {32, 1, 10},  {1, 10, 32}, {5, 16, 3},
    {17, 48, 16}, {61, 67, 13}, {3, 70, 7}, {70, 3, 48}, {64, 64, 20}, {0, 5, 3},   {5, 0, 3}};

TEST(Matmul, IntegersWrap) {
  for (DeviceClass device_class : device_classes()) {
    for (const auto& [m, n, k] : kSizes) {
      if (is_too_large(8 * m * n * (k + 1))) continue;
      for (int transposes = 0; transposes < 4; ++transposes) {
        const MatmulConfig c{m, n, k, (transposes & 1) != 0, transposes > 1};
        if (is_simulated() && c.transpose_a != c.transpose_b) continue;
        expect_integers<int32_t>(device_class, DType::kI32, c);
        expect_integers<int64_t>(device_class, DType::kI64, c);
      }
    }
  }
}

TEST(Matmul, RefusesIntegersWithAnEpilogueAndWhatHasNoKernel) {
  const auto message = [](DType dtype, bool has_bias) -> std::string {
    MatmulConfig c{2, 3, 4};
    c.dtype = dtype;
    c.has_bias = has_bias;
    try {
      plan_matmul(DeviceClass::kCpu, c);
    } catch (const device::Error& error) {
      return error.what();
    }
    return "nothing was thrown";
  };
  EXPECT_EQ(message(DType::kI32, true), "has no kernel for i32 with an epilogue");
  EXPECT_NE(message(DType::kU8, false).find("matmul_general_u8"), std::string::npos);
}

}  // namespace
}  // namespace ballast::kernels::testing
