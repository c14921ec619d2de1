// Results of many bytes are written past the caches: by the same kernels, to the same bits.
#include "kernels/plan/streaming.h"
#include "kernels/kernels.h"
#include "kernels/plan/halide_runtime.h"
#include "kernels/plan/registers.h"
#include "kernels/test_support.h"

#include <algorithm>
#include <string>

namespace ballast::kernels::testing {
namespace {

// Of a product with so many columns tiles of whole cache lines are better than others that would
// fit.
constexpr int64_t kLength = 400, kRowBytes = 4 * kLength, kFewRows = 21;
// Enough for their own size, and what is read and written of them for the last cache's.
const int64_t kRows = std::max(kStreamedRowsBytes, last_cache_bytes() / 2) / kRowBytes + 21;

using PlanOfRows = std::function<Plan(int64_t rows)>;

TensorType rows_type(int64_t rows) { return {DType::kF32, {rows, kLength}}; }

bool is_streamed(const Plan& plan) {
  return std::any_of(plan.launches.begin(), plan.launches.end(), [](const device::Launch& launch) {
    return launch.source->text.find("STREAM(") != std::string::npos;
  });
}

// What is computed of many rows is what is computed of the first and of the last few.
void expect_same_rows(const PlanOfRows& plan, std::vector<HostTensor> shared,
                      const std::vector<TensorType>& more = {}) {
  if (is_too_large(kRows * kLength)) GTEST_SKIP() << "too slow on the simulator";
  ASSERT_TRUE(is_streamed(plan(kRows)));
  ASSERT_FALSE(is_streamed(plan(kFewRows)));
  const HostTensor x = random_f32({kRows, kLength}, 5);
  const std::vector<float> values = x.as<float>();
  const auto results = [&](int64_t first, int64_t rows) {
    const float* begin = values.data() + first * kLength;
    std::vector<HostTensor> inputs{HostTensor(DType::kF32, {rows, kLength},
                                              std::vector<float>(begin, begin + rows * kLength))};
    inputs.insert(inputs.end(), shared.begin(), shared.end());
    std::vector<TensorType> outputs{rows_type(rows)};
    for (TensorType type : more) {
      type.shape[0] = rows;
      outputs.push_back(type);
    }
    return run_plan(plan(rows), inputs, outputs)[0].as<float>();
  };
  const std::vector<float> all = results(0, kRows);
  for (int64_t first : {int64_t{0}, kRows - kFewRows}) {
    const auto begin = all.begin() + first * kLength;
    EXPECT_EQ(std::vector<float>(begin, begin + kFewRows * kLength), results(first, kFewRows));
  }
}

TEST(Streams, Pointwise) {
  const TensorType row{DType::kF32, {kLength}};
  expect_same_rows(
      [&](int64_t rows) {
        return plan_pointwise(DeviceClass::kCpu, "mul", {rows_type(rows), row}, rows_type(rows));
      },
      {random_f32({kLength}, 6)});
}

TEST(Streams, Fused) {
  const TensorType row{DType::kF32, {kLength}};
  expect_same_rows(
      [&](int64_t rows) {
        const TensorType type = rows_type(rows);
        return plan_fused(DeviceClass::kCpu,
                          {{type, row},
                           {{"tanh", {{true, 0}}, type}, {"add", {{false, 0}, {true, 1}}, type}},
                           {1, 0}});
      },
      {random_f32({kLength}, 6)}, {rows_type(1)});
}

TEST(Streams, Softmax) {
  for (const char* op : {"softmax", "log_softmax"}) {
    expect_same_rows(
        [&](int64_t rows) {
          return plan_softmax(DeviceClass::kCpu, op, {rows, kLength}, 1);
        },
        {});
  }
}

TEST(Streams, LayerNorm) {
  const TensorType statistic{DType::kF32, {1, 1}};
  expect_same_rows(
      [&](int64_t rows) { return plan_layer_norm(DeviceClass::kCpu, rows, kLength, 1e-5f); },
      {random_f32({kLength}, 6), random_f32({kLength}, 7)}, {statistic, statistic});
}

TEST(Streams, NotWhatTheLastCacheKeeps) {
  // Large, and yet no more with what is read than that cache.
  const int64_t rows = last_cache_bytes() / 2 / kRowBytes;
  if (rows * kRowBytes < kStreamedRowsBytes) GTEST_SKIP() << "no last cache worth keeping in";
  const TensorType type = rows_type(rows);
  EXPECT_FALSE(is_streamed(plan_pointwise(DeviceClass::kCpu, "relu", {type}, type)));
  EXPECT_TRUE(is_streamed(plan_pointwise(DeviceClass::kCpu, "mul", {type, type}, type)));
}

TEST(Streams, Matmul) {
  for (const char* activation : {"none", "relu"}) {
    MatmulConfig config;
    config.n = config.k = kLength;
    config.activation = activation;
    expect_same_rows(
        [&](int64_t rows) {
          config.m = rows;
          return plan_matmul(DeviceClass::kCpu, config);
        },
        {random_f32({kLength, kLength}, 6)});
  }
}

// Of seven eighths of the last cache: rows of one panel, or of several in a page, follow each other,
// those pages apart do not.
TEST(Streams, ProductsOfPanelsPagesApartWhereTheyFillMostOfTheLastCache) {
  const RegistersScope scope(kWideRegisters);
  constexpr int64_t kSteps = 48;
  const auto is_past_it = [](int64_t columns) {
    MatmulConfig config;
    config.n = columns, config.k = kSteps;
    config.m = last_cache_bytes() * 7 / 8 / (4 * (columns + kSteps));
    return is_streamed(plan_matmul(DeviceClass::kCpu, config));
  };
  if (last_cache_bytes() / 4 < kStreamedBytes) GTEST_SKIP() << "no last cache worth keeping in";
  EXPECT_FALSE(is_past_it(64));
  EXPECT_FALSE(is_past_it(256));
  EXPECT_TRUE(is_past_it(2048));
}

}  // namespace
}  // namespace ballast::kernels::testing
