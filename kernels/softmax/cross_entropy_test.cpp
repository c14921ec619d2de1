#include "kernels/test_support.h"

#include <algorithm>

namespace ballast::kernels::testing {
namespace {

struct Reference {
  std::vector<double> loss, gradient;
};

Reference reference(const std::vector<float>& logits, const std::vector<int32_t>& labels,
                    const std::vector<float>& dloss, double smoothing) {
  const size_t batch = labels.size(), classes = logits.size() / batch;
  Reference result;
  for (size_t b = 0; b < batch; ++b) {
    const float* row = logits.data() + b * classes;
    const double peak = *std::max_element(row, row + classes);
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

void check(int64_t batch, int64_t classes, float scale, bool has_bad_labels, float smoothing = 0) {
  const HostTensor logits = random_f32({batch, classes}, 21, -scale, scale);
  const HostTensor dloss = random_f32({batch}, 22);
  std::vector<int32_t> labels;
  for (int64_t b = 0; b < batch; ++b) labels.push_back(static_cast<int32_t>(b * 7 % classes));
  if (has_bad_labels) {
    labels[0] = -1;
    labels[batch / 2] = static_cast<int32_t>(classes);
    labels[batch - 1] = std::numeric_limits<int32_t>::max();
  }
  const HostTensor label_tensor = i32({batch}, labels);
  const Reference want = reference(logits.as<float>(), labels, dloss.as<float>(), smoothing);
  for (DeviceClass c : kClasses) {
    const auto loss = run_plan(plan_softmax_cross_entropy(c, batch, classes, smoothing),
                               {logits, label_tensor}, dloss.type)
                          .as<float>();
    const auto gradient = run_plan(plan_softmax_cross_entropy_grad(c, batch, classes, smoothing),
                                   {dloss, logits, label_tensor}, logits.type)
                              .as<float>();
    for (size_t i = 0; i < loss.size(); ++i) {
      if (std::isnan(want.loss[i])) {
        EXPECT_TRUE(std::isnan(loss[i])) << i;
      } else {
        EXPECT_NEAR(loss[i], want.loss[i], 1e-5 + 1e-6 * scale) << batch << "x" << classes;
      }
    }
    for (size_t i = 0; i < gradient.size(); ++i) {
      if (std::isnan(want.gradient[i])) {
        EXPECT_TRUE(std::isnan(gradient[i])) << i;
      } else {
        EXPECT_NEAR(gradient[i], want.gradient[i], 2e-6) << batch << "x" << classes;
      }
    }
  }
}

TEST(CrossEntropy, MatchesDouble) {
  for (int64_t batch : {1, 5, 16, 64}) {
    for (int64_t classes : {1, 2, 10, 16, 37}) {
      if (!is_too_large(4 * batch * classes)) check(batch, classes, 3, false);
    }
  }
  check(is_too_large(3 * 5001) ? 1 : 3, 5001, 3, false);
  if (!is_too_large(33 * 1001)) check(33, 1001, 3, false);
}

TEST(CrossEntropy, SmoothsLabels) {
  for (int64_t batch : {1, 20}) {
    for (int64_t classes : {1, 10, 37}) check(batch, classes, 3, classes == 10, 0.1f);
  }
  check(4, 40, 3, false, 1);
}

// A class that cannot be, as masking makes it.
TEST(CrossEntropy, MinusInfinityCountsForNothing) {
  for (int64_t classes : {4, 40}) {
    std::vector<float> values(2 * classes, 0.5f);
    values[2] = -INFINITY;
    const HostTensor logits = f32({2, classes}, values), labels = i32({2}, {1, 1});
    for (DeviceClass c : kClasses) {
      const auto loss = run_plan(plan_softmax_cross_entropy(c, 2, classes), {logits, labels},
                                 TensorType{DType::kF32, {2}})
                            .as<float>();
      EXPECT_NEAR(loss[0], std::log(static_cast<double>(classes - 1)), 1e-6);
    }
  }
}

TEST(CrossEntropy, LargeLogitsDoNotOverflow) { check(32, 10, 500, false); }

TEST(CrossEntropy, LabelsOutOfRangeGiveNaNRows) {
  for (int64_t batch : {5, 16, 32}) check(batch, 10, 3, true);
}

TEST(CrossEntropy, NaNLogitsGiveNaNRows) {
  std::vector<float> values(16 * 4, 0.5f);
  values[4 * 3 + 2] = NAN;
  const HostTensor logits = f32({16, 4}, values), labels = i32({16}, std::vector<int32_t>(16, 1));
  for (DeviceClass c : kClasses) {
    const auto loss = run_plan(plan_softmax_cross_entropy(c, 16, 4), {logits, labels},
                               TensorType{DType::kF32, {16}})
                          .as<float>();
    for (int i = 0; i < 16; ++i) EXPECT_EQ(std::isnan(loss[i]), i == 3) << i;
  }
}

TEST(CrossEntropy, EmptyBatchNeedsNoLaunch) {
  for (DeviceClass c : kClasses) {
    EXPECT_TRUE(plan_softmax_cross_entropy(c, 0, 10).launches.empty());
    EXPECT_TRUE(plan_softmax_cross_entropy_grad(c, 0, 10).launches.empty());
  }
}

}  // namespace
}  // namespace ballast::kernels::testing
