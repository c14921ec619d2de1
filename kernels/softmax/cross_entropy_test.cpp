#include "kernels/test_support.h"

#include <algorithm>

namespace ballast::kernels::testing {
namespace {

struct Reference {
  std::vector<double> loss, gradient;
};

// Or NaN, where there is one.
double largest(const float* begin, const float* end) {
  double peak = -INFINITY;
  for (; begin < end; ++begin) peak = std::isnan(*begin) ? NAN : *begin <= peak ? peak : *begin;
  return peak;
}

Reference reference(const std::vector<float>& logits, const std::vector<int32_t>& labels,
                    const std::vector<float>& dloss, double smoothing) {
  const size_t batch = labels.size(), classes = logits.size() / batch;
  Reference result;
  for (size_t b = 0; b < batch; ++b) {
    const float* row = logits.data() + b * classes;
    const double peak = largest(row, row + classes);
    double total = 0;
    for (size_t c = 0; c < classes; ++c) total += std::exp(row[c] - peak);
    const double share = smoothing / static_cast<double>(classes);
    const bool valid = labels[b] >= 0 && labels[b] < static_cast<int32_t>(classes);
    double loss = 0;
    for (size_t c = 0; c < classes; ++c) {
      const double hot = static_cast<int32_t>(c) == labels[b];
      const double target = hot * (1 - smoothing) + share;
      if (target != 0) loss -= target * (row[c] - peak - std::log(total));
      const double value = dloss[b] * (std::exp(row[c] - peak) / total - target);
      result.gradient.push_back(valid ? value : NAN);
    }
    result.loss.push_back(valid ? loss : NAN);
  }
  return result;
}

void expect_near(const std::vector<float>& got, const std::vector<double>& want, double bound,
                 const std::string& what) {
  for (size_t i = 0; i < want.size(); ++i) {
    if (std::isfinite(want[i])) {
      EXPECT_NEAR(got[i], want[i], bound) << what << " at " << i;
    } else {
      EXPECT_EQ(ulps(got[i], want[i]), 0) << what << " at " << i << " " << got[i];
    }
  }
}

void check_logits(const HostTensor& logits, const std::vector<int32_t>& labels, float smoothing,
                  double bound) {
  const int64_t batch = logits.type.shape[0], classes = logits.type.shape[1];
  const HostTensor dloss = random_f32({batch}, 22), label_tensor = i32({batch}, labels);
  const Reference want = reference(logits.as<float>(), labels, dloss.as<float>(), smoothing);
  for (DeviceClass c : device_classes()) {
    const std::string what =
        fmt::format("{} {}x{} smoothing {}", class_name(c), batch, classes, smoothing);
    expect_near(run_plan(plan_softmax_cross_entropy(c, batch, classes, smoothing),
                         {logits, label_tensor}, dloss.type)
                    .as<float>(),
                want.loss, bound, "loss of " + what);
    expect_near(run_plan(plan_softmax_cross_entropy_grad(c, batch, classes, smoothing),
                         {dloss, logits, label_tensor}, logits.type)
                    .as<float>(),
                want.gradient, 2e-6, "gradient of " + what);
  }
}

std::vector<int32_t> some_labels(int64_t batch, int64_t classes) {
  std::vector<int32_t> labels;
  for (int64_t b = 0; b < batch; ++b) labels.push_back(static_cast<int32_t>(b * 7 % classes));
  return labels;
}

void check(int64_t batch, int64_t classes, float scale, bool has_bad_labels, float smoothing = 0) {
  std::vector<int32_t> labels = some_labels(batch, classes);
  if (has_bad_labels) {
    labels[0] = -1;
    labels[batch / 2] = static_cast<int32_t>(classes);
    labels[batch - 1] = std::numeric_limits<int32_t>::max();
  }
  check_logits(random_f32({batch, classes}, 21, -scale, scale), labels, smoothing,
               1e-5 + 1e-6 * scale);
}

TEST(CrossEntropy, MatchesDouble) {
  for (int64_t batch : {1, 5, 16, 35, 64}) {
    for (int64_t classes : {1, 2, 10, 16, 37}) {
      if (!is_too_large(4 * batch * classes)) check(batch, classes, 3, false);
    }
  }
  check(is_too_large(3 * 5001) ? 1 : 3, 5001, 3, false);
  if (!is_too_large(33 * 1001)) check(33, 1001, 3, false);
  if (!is_too_large(2050 * 1024)) check(2050, 1024, 3, false);  // past the caches
}

TEST(CrossEntropy, SmoothsLabels) {
  for (int64_t batch : {1, 5, 20, 35}) {
    for (int64_t classes : {1, 2, 10, 16, 37, 64, 257}) {
      if (!is_too_large(8 * batch * classes)) check(batch, classes, 3, classes == 10, 0.1f);
    }
  }
  check(4, 40, 3, false, 1);
  if (!is_too_large(2 * 5001)) check(2, 5001, 3, false, 0.1f);
}

// A row with a NaN or +inf, or of -inf only, is NaN. Elsewhere -inf is a class that cannot be, as
// masking makes it: it counts for nothing, but for its label and for smoothing, which make it
// infinitely wrong.
TEST(CrossEntropy, SpecialLogits) {
  for (int64_t classes : {2, 4, 16, 40, 70, 300}) {
    for (float smoothing : {0.0f, 0.1f}) {
      constexpr int64_t kRows = 9;
      auto values = random_f32({kRows, classes}, 23).as<float>();
      std::vector<int32_t> labels = some_labels(kRows, classes);
      const auto at = [&](int64_t row, int64_t c) -> float& { return values[row * classes + c]; };
      for (int64_t c : {int64_t{0}, classes - 1}) {
        const int64_t row = c == 0 ? 0 : 4;
        at(row, c) = NAN;
        at(row + 1, c) = INFINITY;
        at(row + 2, c) = -INFINITY;
      }
      labels[2] = 1, labels[6] = 0;
      std::fill_n(values.begin() + 3 * classes, classes, -INFINITY);
      at(8, 0) = -INFINITY;
      labels[8] = 0;
      check_logits(f32({kRows, classes}, values), labels, smoothing, 1e-5);
    }
  }
}

TEST(CrossEntropy, LargeLogitsDoNotOverflow) { check(32, 10, 500, false); }

TEST(CrossEntropy, LabelsOutOfRangeGiveNaNRows) {
  for (int64_t batch : {5, 16, 32}) check(batch, 10, 3, true);
}

TEST(CrossEntropy, EmptyBatchNeedsNoLaunch) {
  for (DeviceClass c : device_classes()) {
    EXPECT_TRUE(plan_softmax_cross_entropy(c, 0, 10).launches.empty());
    EXPECT_TRUE(plan_softmax_cross_entropy_grad(c, 0, 10).launches.empty());
  }
}

}  // namespace
}  // namespace ballast::kernels::testing
