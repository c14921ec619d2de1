#include "kernels/reduce/reduce_reference.h"

#include <algorithm>
#include <limits>

namespace ballast::kernels::testing {
namespace {

struct Case {
  Shape shape;
  std::vector<int64_t> axes;
};

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {{}, {}},
      {{1}, {0}},
      {{5}, {}},
      {{7}, {0}},
      {{32}, {0}},
      {{33}, {0}},
      {{100}, {0}},
      {{200003}, {0}},
      {{1 << 18}, {0}},
      {{64, 10}, {0}},
      {{64, 10}, {1}},
      {{64, 512}, {0}},
      {{64, 48}, {0}},
      {{7, 16}, {0}},
      {{5, 33}, {1}},
      {{3, 70001}, {1}},
      {{70001, 3}, {0}},
      {{40000, 16}, {0}},
      {{5000, 64}, {0}},
      {{4, 9, 32}, {1}},
      {{4, 9, 7}, {1}},
      {{4, 9, 7}, {0, 2}},
      {{4, 9, 7}, {0, 1, 2}},
      {{4, 1, 7}, {1}},
      {{2, 3, 4, 5}, {1, 3}},
      {{2, 3, 4, 16}, {0, 2}},
      {{2, 3, 4, 5, 6}, {0, 2, 4}},
      {{2, 3, 2, 3, 2, 3}, {1, 3, 5}},
      {{0}, {0}},
      {{3, 0}, {1}},
      {{0, 3}, {0}},
      {{2, 0, 16}, {1}},
      {{2, 3, 0}, {0, 2}},
      {{0, 3}, {1}},
  };
  return all;
}

class FloatReduce : public ::testing::TestWithParam<const char*> {};

TEST_P(FloatReduce, MatchesDouble) {
  const std::string kind = GetParam();
  const bool may_be_empty = kind != "max" && kind != "min";
  for (const auto& [shape, axes] : cases()) {
    if (is_too_large(2 * elements(shape)) || (elements(shape) == 0 && !may_be_empty)) continue;
    // Products stay near one.
    const HostTensor input =
        kind == "prod" ? random_f32(shape, 31, 0.9999f, 1.0001f) : random_f32(shape, 32);
    const auto want = reference(kind, shape, axes, input.as<float>());
    const TensorType type{DType::kF32, kept_shape(shape, axes)};
    const double terms = static_cast<double>(elements(shape)) / std::max<double>(1, want.size());
    // Roundings of a sum cancel; those of a product near one need not.
    const double growth = kind == "prod"  ? 1e-8 * terms
                          : kind == "sum" ? 2e-6 * std::sqrt(terms)
                                          : 0;
    const double bound = 1e-6 + growth;
    for (DeviceClass c : kClasses) {
      const Plan plan = plan_reduce(c, kind, input.type, axes, type);
      EXPECT_TRUE(same_launches(plan, plan_reduce(c, kind, input.type, axes, type)));
      const auto got = run_plan(plan, {input}, type).as<float>();
      for (size_t i = 0; i < got.size(); ++i) {
        if (std::isnan(want[i])) {
          EXPECT_TRUE(std::isnan(got[i]));
        } else {
          EXPECT_NEAR(got[i], want[i], bound * std::max(1.0, std::fabs(want[i])))
              << class_name(c) << " " << kind << " " << to_string(shape) << " over "
              << to_string(axes) << " at " << i;
        }
      }
    }
  }
}

TEST_P(FloatReduce, HandsOnNaN) {
  const std::string kind = GetParam();
  for (const auto& [shape, axes] : std::vector<Case>{
           {{100}, {0}}, {{37}, {0}}, {{9, 16}, {0}}, {{9, 5}, {0}}, {{9, 40}, {1}}}) {
    for (int64_t where = 0; where < elements(shape); where += 31) {
      auto values = random_f32(shape, 33).as<float>();
      values[where] = NAN;
      const auto want = reference(kind, shape, axes, values);
      const TensorType in{DType::kF32, shape}, out{DType::kF32, kept_shape(shape, axes)};
      for (DeviceClass c : kClasses) {
        const auto got =
            run_plan(plan_reduce(c, kind, in, axes, out), {f32(shape, values)}, out).as<float>();
        for (size_t i = 0; i < got.size(); ++i) EXPECT_EQ(std::isnan(got[i]), std::isnan(want[i]));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, FloatReduce, ::testing::Values("sum", "mean", "max", "min", "prod"),
                         [](const auto& test) { return std::string(test.param); });

// Whose squares overflow: infinity is no NaN.
TEST(Reduce, ExtremaOfInfinitiesAndHugeNumbers) {
  const Shape shape{6, 83};
  auto values = random_f32(shape, 34).as<float>();
  const auto row = [&](size_t number) {
    return values.begin() + static_cast<ptrdiff_t>(83 * number);
  };
  row(0)[40] = INFINITY, row(0)[41] = -INFINITY, row(0)[82] = -INFINITY;
  for (size_t i = 0; i < 83; ++i) row(1)[i] *= 3e38f;
  std::fill(row(2), row(3), -INFINITY);
  std::fill(row(3), row(4), INFINITY);
  row(4)[0] = NAN, row(4)[82] = INFINITY;
  const TensorType in{DType::kF32, shape}, out{DType::kF32, {6}};
  for (const char* kind : {"max", "min"}) {
    const auto want = reference(kind, shape, {1}, values);
    for (DeviceClass c : kClasses) {
      const auto got =
          run_plan(plan_reduce(c, kind, in, {1}, out), {f32(shape, values)}, out).as<float>();
      for (size_t i = 0; i < got.size(); ++i) {
        if (i == 4) {
          EXPECT_TRUE(std::isnan(got[i]));
        } else {
          EXPECT_EQ(got[i], static_cast<float>(want[i]))
              << class_name(c) << " " << kind << " " << i;
        }
      }
    }
  }
}

// The worst case: a constant, as additions to a total that grows round the same way for long. Four
// thousand of them end 4e-5 off, a million 1e-2.
TEST(Reduce, LongSumsStayAccurate) {
  const std::vector<Case> sums = {{{4000003}, {0}},    {{1000003, 4}, {0}}, {{2200000, 2}, {0}},
                                  {{4, 1000000}, {1}}, {{60000, 64}, {0}},  {{2, 900000, 2}, {1}}};
  for (const auto& [shape, axes] : sums) {
    if (is_too_large(elements(shape))) continue;
    const HostTensor input = f32(shape, std::vector<float>(elements(shape), 0.1f));
    const TensorType type{DType::kF32, kept_shape(shape, axes)};
    const double want = 0.1f * static_cast<double>(elements(shape)) / elements(type.shape);
    for (DeviceClass c : kClasses) {
      const Plan plan = plan_reduce(c, "sum", input.type, axes, type);
      for (float got : run_plan(plan, {input}, type).as<float>()) {
        EXPECT_NEAR(got, want, 5e-5 * want) << class_name(c) << " " << to_string(shape);
      }
    }
  }
}

TEST(Reduce, Integers) {
  for (const char* kind : {"sum", "prod", "max", "min"}) {
    for (const auto& [shape, axes] : cases()) {
      if (elements(shape) == 0 || elements(shape) > 10000) continue;
      std::vector<int32_t> values(elements(shape));
      for (size_t i = 0; i < values.size(); ++i) {
        values[i] =
            std::string(kind) == "prod" ? (i % 3 ? 1 : -1) : static_cast<int>(i * 37 % 101) - 50;
      }
      const auto want = reference(kind, shape, axes, values);
      const TensorType type{DType::kI32, kept_shape(shape, axes)};
      for (DeviceClass c : kClasses) {
        const HostTensor input = i32(shape, values);
        const auto got =
            run_plan(plan_reduce(c, kind, input.type, axes, type), {input}, type).as<int32_t>();
        for (size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i], want[i]) << kind;
      }
    }
  }
}

TEST(Reduce, AnyAndAll) {
  for (const char* kind : {"any", "all"}) {
    for (const auto& [shape, axes] : cases()) {
      if (is_too_large(4 * elements(shape)) || elements(shape) > 10000) continue;
      std::vector<uint8_t> values(elements(shape));
      for (size_t i = 0; i < values.size(); ++i)
        values[i] = i * 2654435761u % 97 > (kind[1] == 'n' ? 90 : 6);
      const auto want = reference(kind, shape, axes, values);
      const TensorType type{DType::kBool, kept_shape(shape, axes)};
      for (DeviceClass c : kClasses) {
        const HostTensor input(DType::kBool, shape, values);
        const auto got = run_plan(plan_reduce(c, kind, input.type, axes, type), {input}, type);
        for (size_t i = 0; i < want.size(); ++i) EXPECT_EQ(got.bytes[i], want[i]) << kind;
      }
    }
  }
}

int64_t arg_reference(bool is_max, const std::vector<float>& values) {
  int64_t best = 0;
  for (size_t i = 1; i < values.size(); ++i) {
    if (std::isnan(values[best])) break;
    const bool better = is_max ? values[i] > values[best] : values[i] < values[best];
    if (better || std::isnan(values[i])) best = static_cast<int64_t>(i);
  }
  return best;
}

TEST(Reduce, ArgMaxAndArgMin) {
  for (const auto& [shape, axes] : std::vector<Case>{{{1}, {0}},
                                                     {{37}, {0}},
                                                     {{64, 10}, {1}},
                                                     {{64, 10}, {0}},
                                                     {{5, 10}, {1}},
                                                     {{9, 32}, {0}},
                                                     {{3, 9, 32}, {1}},
                                                     {{3, 9, 5}, {1}},
                                                     {{2, 5, 83}, {1}},
                                                     {{5, 16}, {1}},
                                                     {{3, 1009}, {1}},
                                                     {{40, 192}, {1}},
                                                     {{0, 4}, {1}}}) {
    if (is_too_large(4 * elements(shape))) continue;
    auto values = random_f32(shape, 41).as<float>();
    for (float& v : values) v = std::round(v * 4);  // ties
    if (values.size() > 20) values[17] = NAN, values[19] = NAN;
    const int64_t axis = axes[0];
    int64_t inner = 1;
    for (size_t d = axis + 1; d < shape.size(); ++d) inner *= shape[d];
    const TensorType in{DType::kF32, shape}, out{DType::kI32, kept_shape(shape, axes)};
    for (const char* kind : {"argmax", "argmin"}) {
      for (DeviceClass c : kClasses) {
        const auto got =
            run_plan(plan_reduce(c, kind, in, axes, out), {f32(shape, values)}, out).as<int32_t>();
        for (size_t i = 0; i < got.size(); ++i) {
          const int64_t first = static_cast<int64_t>(i) / inner * shape[axis] * inner + i % inner;
          std::vector<float> line;
          for (int64_t r = 0; r < shape[axis]; ++r) line.push_back(values[first + r * inner]);
          EXPECT_EQ(got[i], arg_reference(kind == std::string("argmax"), line))
              << class_name(c) << " " << kind << " " << to_string(shape) << " at " << i;
        }
      }
    }
  }
}

template <class T>
void check_whole(DType dtype, const std::vector<const char*>& kinds, T low, T step) {
  for (const char* kind : kinds) {
    for (const auto& [shape, axes] : cases()) {
      if (elements(shape) == 0 || elements(shape) > 10000) continue;
      std::vector<T> values(elements(shape));
      for (size_t i = 0; i < values.size(); ++i) {
        values[i] = static_cast<T>(low + static_cast<T>(i * 37 % 101) * step);
      }
      const auto want = reference(kind, shape, axes, values);
      const TensorType type{dtype, kept_shape(shape, axes)};
      for (DeviceClass c : kClasses) {
        const HostTensor input(dtype, shape, values);
        const auto got =
            run_plan(plan_reduce(c, kind, input.type, axes, type), {input}, type).template as<T>();
        for (size_t i = 0; i < got.size(); ++i) {
          EXPECT_EQ(static_cast<double>(got[i]), want[i]) << kind << " " << to_string(shape);
        }
      }
    }
  }
}

TEST(Reduce, LongAndShortIntegers) {
  check_whole<int64_t>(DType::kI64, {"sum", "max", "min"}, -(int64_t{1} << 36), int64_t{1} << 30);
  check_whole<uint8_t>(DType::kU8, {"max", "min"}, 3, 2);
}

TEST(Reduce, RefusesWhatHasNoKernel) {
  const TensorType u8{DType::kU8, {4}}, scalar{DType::kU8, {}};
  EXPECT_THROW(plan_reduce(DeviceClass::kCpu, "sum", u8, {0}, scalar), device::Error);
}

struct SumCase {
  Shape shape;
  int64_t axis;
};

TEST(Cumulative, SumsMatchDouble) {
  for (const auto& [shape, axis] : std::vector<SumCase>{{{1}, 0},
                                                        {{7}, 0},
                                                        {{500}, 0},
                                                        {{5, 9}, 1},
                                                        {{5, 9}, 0},
                                                        {{40, 16}, 0},
                                                        {{3, 11, 32}, 1},
                                                        {{3, 11, 5}, 1},
                                                        {{2, 3, 4, 5}, 2},
                                                        {{33, 1}, 0},
                                                        {{6, 100}, 1},
                                                        {{19, 16}, 1},
                                                        {{2, 9, 35}, 2},
                                                        {{5, 300}, 0},
                                                        {{0, 3}, 1}}) {
    const HostTensor input = random_f32(shape, 71);
    const auto values = input.as<float>();
    int64_t inner = 1;
    for (size_t d = axis + 1; d < shape.size(); ++d) inner *= shape[d];
    for (int mode = 0; mode < 4; ++mode) {
      const bool is_exclusive = mode & 1, is_reverse = mode & 2;
      for (DeviceClass c : kClasses) {
        const auto got = run_plan(plan_cumsum(c, input.type, axis, is_exclusive, is_reverse),
                                  {input}, input.type)
                             .as<float>();
        for (int64_t i = 0; i < elements(shape); ++i) {
          const int64_t r = i / inner % shape[axis];
          double want = 0;
          for (int64_t k = 0; k < shape[axis]; ++k) {
            const bool counts = (is_reverse ? k > r : k < r) || (k == r && !is_exclusive);
            if (counts) want += values[i + (k - r) * inner];
          }
          ASSERT_NEAR(got[i], want, 2e-6 * (1 + static_cast<double>(shape[axis])))
              << class_name(c) << " " << to_string(shape) << " over " << axis << " mode " << mode;
        }
      }
    }
  }
}

TEST(Cumulative, Integers) {
  for (DeviceClass c : kClasses) {
    const HostTensor input = i32({2, 3}, {1, 2, 3, -4, 5, 1 << 30});
    EXPECT_EQ(
        run_plan(plan_cumsum(c, input.type, 1, false, false), {input}, input.type).as<int32_t>(),
        (std::vector<int32_t>{1, 3, 6, -4, 1, (1 << 30) + 1}));
    const HostTensor wide(DType::kI64, {3}, std::vector<int64_t>{int64_t{1} << 40, 2, 3});
    EXPECT_EQ(run_plan(plan_cumsum(c, wide.type, 0, true, true), {wide}, wide.type).as<int64_t>(),
              (std::vector<int64_t>{5, 3, 0}));
  }
}

}  // namespace
}  // namespace ballast::kernels::testing
