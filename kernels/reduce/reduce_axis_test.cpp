// argmax, argmin and running sums, which go along one axis, by plain loops.
#include "kernels/reduce/reduce_reference.h"

#include <functional>
#include <limits>

namespace ballast::kernels::testing {
namespace {

template <class T>
int64_t arg_reference(bool is_max, const std::vector<T>& values) {
  const auto is_nan = [](T value) { return value != value; };
  int64_t best = 0;
  for (size_t i = 1; i < values.size(); ++i) {
    if (is_nan(values[best])) break;
    const bool better = is_max ? values[i] > values[best] : values[i] < values[best];
    if (better || is_nan(values[i])) best = static_cast<int64_t>(i);
  }
  return best;
}

struct AxisCase {
  Shape shape;
  int64_t axis;

  int64_t length() const { return shape[axis]; }
  int64_t inner() const {
    return elements(Shape(shape.begin() + static_cast<ptrdiff_t>(axis) + 1, shape.end()));
  }
  // Where element `r` of a line lies.
  int64_t place(int64_t line, int64_t r) const {
    return (line / inner() * length() + r) * inner() + line % inner();
  }
};

const std::vector<AxisCase>& arg_cases() {
  static const std::vector<AxisCase> all = {
      {{1}, 0},         {{37}, 0},        {{70001}, 0},    {{64, 10}, 1},     {{64, 10}, 0},
      {{5, 10}, 1},     {{5, 16}, 1},     {{3, 17}, 1},    {{4, 100}, 1},     {{3, 1009}, 1},
      {{2, 40000}, 1},  {{40, 192}, 1},   {{9, 32}, 0},    {{3, 70}, 0},      {{1009, 3}, 0},
      {{3000, 20}, 0},  {{5, 1}, 1},      {{7, 1, 5}, 1},  {{3, 9, 32}, 1},   {{3, 9, 5}, 1},
      {{2, 3, 70}, 1},  {{2, 5, 83}, 2},  {{2, 5, 83}, 1}, {{2, 3, 4, 5}, 2}, {{0, 4}, 1},
      {{4, 31}, 1},     {{4, 32}, 1},     {{3, 33}, 1},    {{3, 256}, 1},     {{3, 257}, 1},
      {{50, 3, 20}, 1}, {{33, 2, 70}, 1}, {{60, 4, 3}, 1}};
  return all;
}

// `value_at` of an element's number.
template <class T>
void check_arg(DType dtype, const AxisCase& one, const std::function<T(size_t)>& value_at) {
  std::vector<T> values;
  for (int64_t i = 0; i < elements(one.shape); ++i) values.push_back(value_at(values.size()));
  const HostTensor input(dtype, one.shape, values);
  const TensorType type{DType::kI32, kept_shape(one.shape, {one.axis})};
  for (const bool is_max : {true, false}) {
    std::vector<int32_t> want;
    for (int64_t line = 0; line < type.elements(); ++line) {
      std::vector<T> in_line;
      for (int64_t r = 0; r < one.length(); ++r) in_line.push_back(values[one.place(line, r)]);
      want.push_back(static_cast<int32_t>(arg_reference(is_max, in_line)));
    }
    for (DeviceClass c : device_classes()) {
      const Plan plan = plan_arg(c, is_max ? "argmax" : "argmin", input.type, one.axis);
      EXPECT_EQ(run_plan(plan, {input}, type).as<int32_t>(), want)
          << class_name(c) << " " << is_max << " " << name_of(dtype) << to_string(one.shape)
          << " over " << one.axis;
    }
  }
}

// Ties, and what a kernel begins with before the first element.
TEST(Reduce, ArgMaxAndArgMin) {
  using L = std::numeric_limits<float>;
  const float inf = INFINITY;
  const std::vector<float> limits = {0.0f, -0.0f, inf, -inf, L::max(), -L::max(), L::denorm_min()};
  for (const AxisCase& one : arg_cases()) {
    if (is_too_large(64 * elements(one.shape))) continue;
    const auto noise = random_f32(one.shape, 41).as<float>();
    check_arg<float>(DType::kF32, one, [&](size_t i) {
      return noise.size() > 20 && (i == 17 || i == 19) ? NAN : std::round(noise[i] * 4);
    });
    if (is_simulated()) continue;  // no address depends on a number
    const auto limit = [&](size_t i) { return limits[i * 2654435761u / 7 % limits.size()]; };
    check_arg<float>(DType::kF32, one, limit);
    for (float all : {inf, -inf, NAN}) {
      if (elements(one.shape) < 1000)
        check_arg<float>(DType::kF32, one, [&](size_t) { return all; });
    }
  }
}

template <class T>
void check_arg_of_integers(DType dtype) {
  using L = std::numeric_limits<T>;
  for (const AxisCase& one : arg_cases()) {
    if (is_too_large(48 * elements(one.shape))) continue;
    check_arg<T>(dtype, one, [](size_t i) {
      return i % 1000 == 999   ? L::max()
             : i % 1000 == 998 ? L::min()
                               : static_cast<T>(L::max() / 16 * (i * 37 % 13));
    });
    if (is_simulated()) continue;  // no address depends on a number
    for (T all : {L::min(), L::max()}) {
      if (elements(one.shape) < 1000) check_arg<T>(dtype, one, [&](size_t) { return all; });
    }
  }
}

TEST(Reduce, ArgMaxAndArgMinOfIntegers) {
  check_arg_of_integers<int32_t>(DType::kI32);
  check_arg_of_integers<int64_t>(DType::kI64);
  check_arg_of_integers<uint8_t>(DType::kU8);
}

const std::vector<AxisCase>& sum_cases() {
  static const std::vector<AxisCase> all = {
      {{1}, 0},        {{7}, 0},        {{500}, 0},       {{40001}, 0},    {{5, 9}, 1},
      {{5, 9}, 0},     {{40, 16}, 0},   {{3, 11, 32}, 1}, {{3, 11, 5}, 1}, {{2, 3, 4, 5}, 2},
      {{33, 1}, 0},    {{6, 100}, 1},   {{19, 16}, 1},    {{2, 9, 35}, 2}, {{5, 300}, 0},
      {{2, 20000}, 1}, {{20000, 3}, 0}, {{700, 70}, 0},   {{5, 1, 3}, 1},  {{0, 3}, 1},
      {{3, 0}, 1},     {{2, 0, 5}, 1},  {{4, 2, 0}, 1},   {{3, 63}, 1},    {{3, 64}, 1},
      {{2, 1024}, 1},  {{2, 1025}, 1},  {{63, 5}, 0},     {{64, 16}, 0},   {{2, 65, 17}, 1},
      {{16, 2}, 1},    {{37, 7}, 1},    {{100, 15}, 1},   {{17, 3}, 1},    {{4, 33}, 1},
      {{50, 3, 20}, 1}};
  return all;
}

// Sums in double from one end to the other. A float's addition errs by 2^-24 of its sum, which
// bounds those so far; integers are exact.
template <class T>
void check_cumsum(DType dtype, const AxisCase& one, const std::vector<T>& values) {
  const HostTensor input(dtype, one.shape, values);
  for (int mode = 0; mode < 4; ++mode) {
    const bool is_exclusive = mode & 1, is_reverse = mode & 2;
    std::vector<double> want(values.size()), bound(values.size());
    for (int64_t line = 0; line * one.length() < elements(one.shape); ++line) {
      double sum = 0, error = 0;
      for (int64_t r = 0; r < one.length(); ++r) {
        const int64_t at = one.place(line, is_reverse ? one.length() - 1 - r : r);
        const double before = sum, error_before = error;
        sum += static_cast<double>(values[at]);
        if (dtype == DType::kF32) error += (std::fabs(sum) + error) * 0x1p-24;
        want[at] = is_exclusive ? before : sum;
        bound[at] = is_exclusive ? error_before : error;
      }
    }
    for (DeviceClass c : device_classes()) {
      const Plan plan = plan_cumsum(c, input.type, one.axis, is_exclusive, is_reverse);
      EXPECT_EQ(plan.launches.empty(), values.empty());
      const auto got = run_plan(plan, {input}, input.type).template as<T>();
      size_t wrong = 0;
      for (size_t i = 0; i < got.size(); ++i) {
        wrong += std::isfinite(want[i])
                     ? !(std::fabs(static_cast<double>(got[i]) - want[i]) <= bound[i])
                     : ulps(static_cast<float>(got[i]), want[i]) != 0;
      }
      EXPECT_EQ(wrong, 0u) << class_name(c) << " " << to_string(input.type) << " over " << one.axis
                           << " mode " << mode;
    }
  }
}

TEST(Cumulative, SumsMatchDouble) {
  for (const AxisCase& one : sum_cases()) {
    if (is_too_large(16 * elements(one.shape))) continue;
    check_cumsum(DType::kF32, one, random_f32(one.shape, 71).as<float>());
  }
}

// What comes behind is infinite too, or NaN where another infinity opposes.
TEST(Cumulative, NaNAndInfinityRunOn) {
  for (const AxisCase& one : sum_cases()) {
    const int64_t lines = elements(one.shape) / std::max<int64_t>(one.length(), 1);
    if (lines > 1000) continue;
    auto values = random_f32(one.shape, 72).as<float>();
    for (int64_t line = 0; line < lines && one.length() > 2; ++line) {
      if (line % 3 != 2) values[one.place(line, one.length() / 3)] = line % 3 ? NAN : INFINITY;
      if (line % 3 == 0) values[one.place(line, one.length() * 3 / 4)] = -INFINITY;
    }
    check_cumsum(DType::kF32, one, values);
  }
}

TEST(Cumulative, Integers) {
  for (const AxisCase& one : sum_cases()) {
    if (is_too_large(48 * elements(one.shape))) continue;
    std::vector<int32_t> values;
    std::vector<int64_t> wide;
    for (int64_t i = 0; i < elements(one.shape); ++i) {
      values.push_back(static_cast<int32_t>(i * 37 % 101 - 40) * 500);
      wide.push_back(values.back() * (int64_t{1} << 24) + 1);
    }
    check_cumsum(DType::kI32, one, values);
    check_cumsum(DType::kI64, one, wide);
  }
}

}  // namespace
}  // namespace ballast::kernels::testing
