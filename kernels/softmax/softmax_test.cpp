#include "kernels/test_support.h"

#include <algorithm>

namespace ballast::kernels::testing {
namespace {

struct Case {
  Shape shape;
  int64_t axis;
};

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {{1}, 0},         {{5}, 0},         {{16}, 0},          {{17}, 0},          {{100}, 0},
      {{70001}, 0},     {{1, 1}, 1},      {{3, 15}, 1},       {{3, 16}, 1},       {{7, 31}, 1},
      {{64, 10}, 1},    {{20, 3}, 1},     {{5, 64}, 1},       {{5, 65}, 1},       {{33, 79}, 1},
      {{9, 127}, 1},    {{129, 196}, 1},  {{40, 1024}, 1},    {{2, 4096}, 1},     {{2, 4097}, 1},
      {{64, 10}, 0},    {{5, 16}, 0},     {{5, 17}, 0},       {{9, 100}, 0},      {{300, 64}, 0},
      {{4, 9, 7}, 1},   {{4, 9, 32}, 1},  {{2, 3, 4, 65}, 2}, {{2, 21, 8, 8}, 1}, {{3, 1, 5}, 1},
      {{0, 4}, 1},      {{4, 0}, 1},      {{4, 0, 3}, 0},     {{400, 33}, 1},     {{17, 256}, 1},
      {{50, 3, 20}, 1}, {{33, 2, 70}, 1}, {{60, 4, 3}, 1},    {{17, 257}, 1},     {{17, 15}, 1},
      {{16, 2}, 1},     {{35, 5}, 1},     {{203, 7}, 1},      {{2050, 1024}, 1},  // past the caches
  };
  return all;
}

struct Reference {
  std::vector<double> y, log_y, dx, log_dx;
};

// Calls f(positions of the elements of a line) for every line along the axis.
void for_each_line(const Case& c, const std::function<void(const std::vector<int64_t>&)>& f) {
  int64_t inner = 1;
  for (size_t d = c.axis + 1; d < c.shape.size(); ++d) inner *= c.shape[d];
  const int64_t length = c.shape[c.axis];
  for (int64_t first = 0; first < elements(c.shape); ++first) {
    if (first / inner % length != 0) continue;
    std::vector<int64_t> line;
    for (int64_t r = 0; r < length; ++r) line.push_back(first + r * inner);
    f(line);
  }
}

// The gradients are those of the results as given, in f32.
Reference reference(const Case& c, const std::vector<float>& x, const std::vector<float>& dy) {
  Reference result;
  for (auto* values : {&result.y, &result.log_y, &result.dx, &result.log_dx}) {
    values->resize(x.size());
  }
  for_each_line(c, [&](const std::vector<int64_t>& line) {
    double peak = -INFINITY, total = 0, dot = 0, sum = 0;
    for (int64_t at : line) peak = std::max<double>(peak, x[at]);
    for (int64_t at : line) total += std::exp(x[at] - peak);
    for (int64_t at : line) {
      result.y[at] = std::exp(x[at] - peak) / total;
      result.log_y[at] = x[at] - peak - std::log(total);
      dot += dy[at] * result.y[at];
      sum += dy[at];
    }
    for (int64_t at : line) {
      result.dx[at] = (dy[at] - dot) * result.y[at];
      result.log_dx[at] = dy[at] - result.y[at] * sum;
    }
  });
  return result;
}

std::vector<float> rounded(const std::vector<double>& values) {
  return {values.begin(), values.end()};
}

void expect_near(const std::vector<float>& got, const std::vector<double>& want, double rtol,
                 double atol, const std::string& what) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::isfinite(want[i])) {
      EXPECT_NEAR(got[i], want[i], atol + rtol * std::fabs(want[i])) << what << " at " << i;
    } else {
      EXPECT_EQ(ulps(got[i], want[i]), 0) << what << " at " << i << " " << got[i];
    }
  }
}

std::string name_of(DeviceClass device, const Case& c) {
  return class_name(device) + " " + to_string(c.shape) + " over " + std::to_string(c.axis);
}

void check_gradients(const Case& c, const std::vector<float>& x, const std::vector<float>& dy) {
  const Reference want = reference(c, x, dy);
  const auto terms = static_cast<double>(c.shape[c.axis]);
  for (DeviceClass device : device_classes()) {
    const auto run = [&](const char* op, const std::vector<double>& y) {
      const HostTensor slopes = f32(c.shape, dy), result = f32(c.shape, rounded(y));
      return run_plan(plan_softmax_grad(device, op, c.shape, c.axis), {slopes, result}, slopes.type)
          .as<float>();
    };
    expect_near(run("softmax", want.y), want.dx, 1e-5, 1e-6, "softmax_grad " + name_of(device, c));
    expect_near(run("log_softmax", want.log_y), want.log_dx, 1e-5, 1e-6 * std::sqrt(terms),
                "log_softmax_grad " + name_of(device, c));
  }
}

void check(const Case& c, float scale) {
  const HostTensor x = random_f32(c.shape, 51, -scale, scale), dy = random_f32(c.shape, 52);
  const Reference want = reference(c, x.as<float>(), dy.as<float>());
  for (DeviceClass device : device_classes()) {
    const auto run = [&](const char* op) {
      return run_plan(plan_softmax(device, op, c.shape, c.axis), {x}, x.type).as<float>();
    };
    expect_near(run("softmax"), want.y, 2e-6, 1e-9, "softmax " + name_of(device, c));
    expect_near(run("log_softmax"), want.log_y, 1e-6, 2e-6, "log_softmax " + name_of(device, c));
  }
  check_gradients(c, x.as<float>(), dy.as<float>());
}

TEST(Softmax, MatchesDouble) {
  for (const Case& c : cases()) {
    if (!is_too_large(8 * elements(c.shape))) check(c, 3);
  }
}

TEST(Softmax, LargeNumbersDoNotOverflow) {
  for (const Case& c : {Case{{3, 40}, 1}, Case{{9, 20}, 0}, Case{{20, 3}, 1}}) check(c, 500);
}

// A line with a NaN or +inf is NaN; one with -inf ignores that element; all of -inf is NaN.
TEST(Softmax, SpecialNumbers) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  for (int64_t length : {4, 40, 4100}) {
    std::vector<float> values(5 * length, 0.5f);
    values[length + 2] = NAN;
    values[2 * length + 3] = kInf;
    values[3 * length + 1] = -kInf;
    std::fill(values.begin() + 4 * length, values.end(), -kInf);
    const HostTensor x = f32({5, length}, values);
    for (DeviceClass device : device_classes()) {
      for (const char* op : {"softmax", "log_softmax"}) {
        const auto y = run_plan(plan_softmax(device, op, {5, length}, 1), {x}, x.type).as<float>();
        const bool is_log = op[0] == 'l';
        for (int64_t c = 0; c < length; ++c) {
          EXPECT_FALSE(std::isnan(y[c]));
          EXPECT_TRUE(std::isnan(y[length + c])) << class_name(device) << " " << op << " " << c;
          EXPECT_TRUE(std::isnan(y[2 * length + c])) << class_name(device) << " " << op;
          EXPECT_TRUE(std::isnan(y[4 * length + c])) << class_name(device) << " " << op << " " << c;
        }
        EXPECT_EQ(y[3 * length + 1], is_log ? -kInf : 0.0f);
        const double share = 1.0 / static_cast<double>(length - 1);
        EXPECT_NEAR(y[3 * length], is_log ? std::log(share) : share, 1e-6);
      }
    }
  }
}

// A NaN or infinity in dy, or a NaN in y, stays in its line, where it goes as the formula says.
TEST(Softmax, GradientsKeepSpecialNumbersInTheirLines) {
  for (const Case& c : {Case{{5, 4}, 1}, Case{{5, 16}, 1}, Case{{5, 40}, 1}, Case{{5, 70}, 1},
                        Case{{4, 5}, 0}, Case{{40, 5}, 0}, Case{{9, 20}, 0}, Case{{2, 3, 70}, 1}}) {
    auto x = random_f32(c.shape, 53).as<float>(), dy = random_f32(c.shape, 54).as<float>();
    int64_t number = 0;
    for_each_line(c, [&](const std::vector<int64_t>& line) {
      const auto at = [&](size_t k) { return line[(k + number) % line.size()]; };
      if (number == 0) dy[at(1)] = NAN;
      if (number == 1) x[at(2)] = NAN;
      if (number == 2) dy[at(3)] = INFINITY;
      if (number == 3) dy[at(0)] = INFINITY, dy[at(2)] = -INFINITY;
      ++number;
    });
    check_gradients(c, x, dy);
  }
}

TEST(Softmax, PlansRepeat) {
  for (DeviceClass device : device_classes()) {
    EXPECT_TRUE(same_launches(plan_softmax(device, "softmax", {8, 33}, 1),
                              plan_softmax(device, "softmax", {8, 33}, 1)));
  }
}

}  // namespace
}  // namespace ballast::kernels::testing
