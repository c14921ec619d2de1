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
      {{15, 3}, {1}},  // rows shorter than a vector, by lane from sixteen on
      {{16, 2}, {1}},
      {{50, 3}, {1}},
      {{3, 37, 4}, {2}},
      {{127, 7}, {1}},
      {{33, 15}, {1}},
      {{3001, 3}, {1}},
      {{64, 512}, {0}},
      {{64, 48}, {0}},
      {{7, 16}, {0}},
      {{5, 16}, {1}},  // and short ones, of less than four vectors
      {{5, 33}, {1}},
      {{40, 49}, {1}},
      {{3, 63}, {1}},
      {{3, 70001}, {1}},
      {{70001, 3}, {0}},
      {{40000, 16}, {0}},
      {{2, 64}, {0}},
      {{5000, 64}, {0}},
      {{4, 9, 32}, {1}},
      {{50, 3, 20}, {1}},
      {{33, 2, 70}, {1}},
      {{60, 4, 3}, {1}},
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

// Products stay near one.
std::vector<float> values_for(const std::string& kind, const Shape& shape) {
  return (kind == "prod" ? random_f32(shape, 31, 0.9999f, 1.0001f) : random_f32(shape, 32))
      .as<float>();
}

void check_floats(const std::string& kind, const Case& one, const std::vector<float>& values) {
  const auto& [shape, axes] = one;
  const auto want = reference(kind, shape, axes, values);
  const TensorType type{DType::kF32, kept_shape(shape, axes)};
  const double terms = static_cast<double>(elements(shape)) / std::max<double>(1, want.size());
  // Roundings of a sum cancel; those of a product near one need not.
  const double growth = kind == "prod" ? 1e-8 * terms : kind == "sum" ? 2e-6 * std::sqrt(terms) : 0;
  const double bound = 1e-6 + growth;
  const HostTensor input = f32(shape, values);
  for (DeviceClass c : device_classes()) {
    const Plan plan = plan_reduce(c, kind, input.type, axes, type);
    EXPECT_TRUE(same_launches(plan, plan_reduce(c, kind, input.type, axes, type)));
    const auto got = run_plan(plan, {input}, type).as<float>();
    for (size_t i = 0; i < got.size(); ++i) {
      const std::string what = fmt::format("{} {} {} over {} at {}", class_name(c), kind,
                                           to_string(shape), to_string(axes), i);
      if (std::isfinite(want[i])) {
        EXPECT_NEAR(got[i], want[i], bound * std::max(1.0, std::fabs(want[i]))) << what;
      } else {
        EXPECT_EQ(ulps(got[i], want[i]), 0) << what << " " << got[i] << " for " << want[i];
      }
    }
  }
}

TEST_P(FloatReduce, MatchesDouble) {
  const std::string kind = GetParam();
  const bool may_be_empty = kind != "max" && kind != "min";
  for (const Case& one : cases()) {
    const int64_t count = elements(one.shape);
    if (is_too_large((kind == "sum" ? 4 : 16) * count) || (count == 0 && !may_be_empty)) continue;
    check_floats(kind, one, values_for(kind, one.shape));
  }
}

// Two of them in each line, somewhere: infinities that oppose, and one beside a zero in a product,
// are NaN; other lines do not notice. Every way to walk, also in chunks and in several launches.
TEST_P(FloatReduce, HandsOnNaNAndInfinity) {
  const std::string kind = GetParam();
  const float inf = INFINITY;
  const std::pair<float, float> specials[] = {{NAN, 1},     {inf, 2},     {-inf, 1},
                                              {-inf, inf},  {0, -inf},    {inf, NAN},
                                              {inf, -0.0f}, {-inf, -inf}, {1, -1}};
  for (const Case& one : std::vector<Case>{{{100}, {0}},
                                           {{37}, {0}},
                                           {{70001}, {0}},
                                           {{9, 16}, {0}},
                                           {{9, 5}, {0}},
                                           {{9, 70}, {0}},
                                           {{7, 256}, {0}},
                                           {{12000, 6}, {0}},
                                           {{9, 40}, {1}},
                                           {{40, 9}, {1}},
                                           {{41, 2}, {1}},
                                           {{70, 3}, {1}},
                                           {{33, 4}, {1}},
                                           {{3, 7, 20}, {1}},
                                           {{4, 9, 7}, {0, 2}}}) {
    const int64_t count = elements(one.shape);
    Shape lines = one.shape;
    for (int64_t axis : one.axes) lines[axis] = 1;
    const int64_t length = count / elements(lines);
    for (size_t round = 0; round < std::size(specials); ++round) {
      auto values = values_for(kind, one.shape);
      std::vector<int64_t> seen(elements(lines));
      size_t at = 0;
      for_each_index(one.shape, [&](const std::vector<int64_t>& index) {
        const int64_t line = broadcast_offset(lines, index), place = seen[line]++;
        const auto& [first, second] = specials[(line + round) % std::size(specials)];
        const int64_t start = (line * 5 + static_cast<int64_t>(round) * 31) % length;
        if (place == start) values[at] = first;
        if (place == (start + length / 2) % length) values[at] = second;
        ++at;
      });
      check_floats(kind, one, values);
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
    for (DeviceClass c : device_classes()) {
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
    for (DeviceClass c : device_classes()) {
      const Plan plan = plan_reduce(c, "sum", input.type, axes, type);
      for (float got : run_plan(plan, {input}, type).as<float>()) {
        EXPECT_NEAR(got, want, 5e-5 * want) << class_name(c) << " " << to_string(shape);
      }
    }
  }
}

// Sixteen and more, which lie in the lanes.
TEST(Reduce, ShortRowsAddUpInOrder) {
  for (int64_t length = 2; length < 16; ++length) {
    for (int64_t rows : {16, 17, 53}) {
      const HostTensor input = random_f32({rows, length}, 33);
      const TensorType type{DType::kF32, {rows}};
      std::vector<float> want(rows);
      const auto values = input.as<float>();
      for (size_t i = 0; i < values.size(); ++i) want[i / length] += values[i];
      const Plan plan = plan_reduce(DeviceClass::kCpu, "sum", input.type, {1}, type);
      EXPECT_EQ(run_plan(plan, {input}, type).as<float>(), want) << rows << "x" << length;
    }
  }
}

TEST(Reduce, AnyAndAll) {
  for (const char* kind : {"any", "all"}) {
    for (const auto& [shape, axes] : cases()) {
      if (is_too_large(8 * elements(shape)) || elements(shape) > 10000) continue;
      std::vector<uint8_t> values(elements(shape));
      for (size_t i = 0; i < values.size(); ++i)
        values[i] = i * 2654435761u % 97 > (kind[1] == 'n' ? 90 : 6);
      const auto want = reference(kind, shape, axes, values);
      const TensorType type{DType::kBool, kept_shape(shape, axes)};
      for (DeviceClass c : device_classes()) {
        const HostTensor input(DType::kBool, shape, values);
        const auto got = run_plan(plan_reduce(c, kind, input.type, axes, type), {input}, type);
        for (size_t i = 0; i < want.size(); ++i) EXPECT_EQ(got.bytes[i], want[i]) << kind;
      }
    }
  }
}

template <class T>
void check_whole(DType dtype, const std::vector<const char*>& kinds,
                 const std::function<T(size_t)>& value_at) {
  for (const char* kind : kinds) {
    for (const auto& [shape, axes] : cases()) {
      const int64_t count = elements(shape);
      if (count == 0 || count > 10000 || is_too_large(40 * count)) continue;
      std::vector<T> values;
      for (int64_t i = 0; i < count; ++i) values.push_back(value_at(values.size()));
      const auto want = reference(kind, shape, axes, values);
      const TensorType type{dtype, kept_shape(shape, axes)};
      for (DeviceClass c : device_classes()) {
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

TEST(Reduce, Integers) {
  const auto hash = [](size_t i) { return static_cast<int>(i * 37 % 101); };
  check_whole<int32_t>(DType::kI32, {"sum", "max", "min"}, [&](size_t i) { return hash(i) - 50; });
  check_whole<int32_t>(DType::kI32, {"prod"}, [](size_t i) { return i % 3 ? 1 : -1; });
  check_whole<int64_t>(DType::kI64, {"sum", "max", "min"},
                       [&](size_t i) { return (hash(i) - 64) * (int64_t{1} << 30); });
  check_whole<int64_t>(DType::kI64, {"prod"}, [](size_t i) {
    return i == 5 ? int64_t{3} << 40 : i % 3 ? 1 : -1;
  });
  check_whole<uint8_t>(DType::kU8, {"max", "min"},
                       [&](size_t i) { return static_cast<uint8_t>(3 + 2 * hash(i)); });
}

template <class T>
void check_wrapping(DType dtype) {
  std::mt19937_64 engine(7);
  std::vector<T> values(5 * 70);
  for (T& value : values) value = static_cast<T>(engine() | 1);
  const HostTensor input(dtype, {5, 70}, values);
  for (const bool is_sum : {true, false}) {
    for (const int64_t axis : {0, 1}) {
      const TensorType type{dtype, {axis == 0 ? 70 : 5}};
      std::vector<uint64_t> totals(type.elements(), is_sum ? 0 : 1);
      for (size_t i = 0; i < values.size(); ++i) {
        uint64_t& total = totals[axis == 0 ? i % 70 : i / 70];
        const auto value = static_cast<uint64_t>(values[i]);
        total = is_sum ? total + value : total * value;
      }
      std::vector<T> want;
      for (uint64_t total : totals) want.push_back(static_cast<T>(total));
      for (DeviceClass c : device_classes()) {
        const Plan plan = plan_reduce(c, is_sum ? "sum" : "prod", input.type, {axis}, type);
        EXPECT_EQ(run_plan(plan, {input}, type).as<T>(), want)
            << class_name(c) << " " << is_sum << " " << name_of(dtype) << " over " << axis;
      }
    }
  }
}

TEST(Reduce, IntegersWrap) {
  check_wrapping<int32_t>(DType::kI32);
  check_wrapping<int64_t>(DType::kI64);
}

TEST(Reduce, RefusesWhatHasNoKernel) {
  const TensorType u8{DType::kU8, {4}}, scalar{DType::kU8, {}};
  EXPECT_THROW(plan_reduce(DeviceClass::kCpu, "sum", u8, {0}, scalar), device::Error);
}

}  // namespace
}  // namespace ballast::kernels::testing
