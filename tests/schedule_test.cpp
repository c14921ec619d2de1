// Losses, learning rate schedules, groups of parameters.
#include "frontend/ballast_frontend.h"
#include "frontend/test_support.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>

namespace ballast::tests {
namespace {

using testing::HasSubstr;

// ---- losses

TEST(LossCellTest, HaveMindSporesValues) {
  const Tensor x = Tensor::from_host<float>({0.2f, 0.9f, 0.5f, 0.4f}, {2, 2});
  const Tensor t = Tensor::from_host<float>({0, 1, 1, 0}, {2, 2});
  EXPECT_NEAR(nn::MSELoss()(x, t).item<float>(), (0.04 + 0.01 + 0.25 + 0.16) / 4, 1e-6);
  EXPECT_NEAR(nn::L1Loss("sum")(x, t).item<float>(), 0.2 + 0.1 + 0.5 + 0.4, 1e-6);
  const double bce = -std::log(0.8) - std::log(0.9) - std::log(0.5) - std::log(0.6);
  EXPECT_NEAR(nn::BCELoss()(x, t).item<float>(), bce / 4, 1e-6);
  EXPECT_EQ(nn::BCELoss("none")(x, t).shape(), (Shape{2, 2}));
  double logits = 0;
  for (double v : {0.2, -0.9, -0.5, 0.4}) logits += std::log(1 + std::exp(v));
  EXPECT_NEAR(nn::BCEWithLogitsLoss("sum")(x, t).item<float>(), logits, 1e-5);
  EXPECT_THAT(message_of([] { nn::MSELoss("all"); }), HasSubstr("reduction is \"all\""));
}

TEST(LossCellTest, CrossEntropySmoothsAndIgnores) {
  const Tensor logits = Tensor::from_host<float>({1, 2, 3, 0, 0, 0, 5, 1, 1}, {3, 3});
  const Tensor labels = Tensor::from_host<int32_t>({0, 2, 1}, {3});
  auto log_softmax = [&](int row, int column) {
    const std::vector<float> z = logits.to_host<float>();
    double sum = 0;
    for (int c = 0; c < 3; ++c) sum += std::exp(z[row * 3 + c]);
    return z[row * 3 + column] - std::log(sum);
  };
  auto loss = [&](int row, int label, double s) {
    double sum = -(1 - s) * log_softmax(row, label);
    for (int c = 0; c < 3; ++c) sum -= s / 3 * log_softmax(row, c);
    return sum;
  };
  EXPECT_NEAR(nn::CrossEntropyLoss()(logits, labels).item<float>(),
              (loss(0, 0, 0) + loss(1, 2, 0) + loss(2, 1, 0)) / 3, 1e-5);
  EXPECT_NEAR(nn::CrossEntropyLoss("sum", 0.2)(logits, labels).item<float>(),
              loss(0, 0, 0.2) + loss(1, 2, 0.2) + loss(2, 1, 0.2), 1e-5);
  const Tensor some = Tensor::from_host<int32_t>({0, -100, 1}, {3});
  EXPECT_NEAR(nn::CrossEntropyLoss("mean", 0, -100)(logits, some).item<float>(),
              (loss(0, 0, 0) + loss(2, 1, 0)) / 2, 1e-5);
  EXPECT_THAT(nn::CrossEntropyLoss("none", 0, -100)(logits, some).to_host<float>()[1], 0);
  EXPECT_THAT(message_of([] { nn::CrossEntropyLoss("mean", 2); }), HasSubstr("label_smoothing"));
}

// ---- schedules

using Formula = std::function<double(double step)>;

void expect_schedule(const nn::LearningRateSchedule& schedule, const Formula& formula) {
  constexpr int kSteps = 25;
  std::vector<float> eager;
  for (int step = 0; step < kSteps; ++step) {
    eager.push_back(schedule(Tensor::scalar(step, DType::kI32)).item<float>());
    EXPECT_NEAR(eager.back(), formula(step), 1e-6 + 1e-5 * std::abs(formula(step))) << step;
  }
  // On the device: the step counts itself.
  const Parameter count(Tensor::scalar(0, DType::kI32), "count", /*requires_grad=*/false);
  auto next = jit(
      [=](const Tensor& unused) {
        Tensor rate = schedule(count);
        count.assign(count + 1);
        return rate + unused;
      },
      at(JitLevel::kO0));
  EXPECT_EQ(sink(next)(kSteps, repeat(Tensor::zeros({1}))).to_host<float>(), eager);
}

TEST(ScheduleTest, FollowTheirFormulas) {
  expect_schedule(nn::ConstantLR(0.3f), [](double) { return 0.3; });
  expect_schedule(nn::CosineDecayLR(0.1f, 0.5f, 10), [](double t) {
    return 0.1 + 0.2 * (1 + std::cos(std::min(t, 10.0) / 10 * 3.141592653589793));
  });
  expect_schedule(nn::ExponentialDecayLR(0.5f, 0.9f, 4),
                  [](double t) { return 0.5 * std::pow(0.9, t / 4); });
  expect_schedule(nn::ExponentialDecayLR(0.5f, 0.9f, 4, true),
                  [](double t) { return 0.5 * std::pow(0.9, std::floor(t / 4)); });
  expect_schedule(nn::InverseDecayLR(0.5f, 0.3f, 4),
                  [](double t) { return 0.5 / (1 + 0.3 * t / 4); });
  expect_schedule(nn::PolynomialDecayLR(0.5f, 0.1f, 10, 2),
                  [](double t) { return 0.4 * std::pow(1 - std::min(t, 10.0) / 10, 2) + 0.1; });
  expect_schedule(nn::PolynomialDecayLR(0.5f, 0.1f, 10, 2, true), [](double t) {
    return 0.4 * std::pow(1 - t / (10 * std::max(1.0, std::ceil(t / 10))), 2) + 0.1;
  });
  expect_schedule(nn::WarmUpLR(0.5f, 8), [](double t) { return 0.5 * std::min(t, 8.0) / 8; });
  expect_schedule(nn::PiecewiseConstantLR({5, 9, 12}, {0.3f, 0.2f, 0.1f}), [](double t) {
    return t < 5 ? 0.3 : t < 9 ? 0.2 : 0.1;
  });
  expect_schedule(
      nn::SequentialLR({nn::WarmUpLR(0.5f, 8), nn::ExponentialDecayLR(0.5f, 0.5f, 1)}, {8}),
      [](double t) { return t < 8 ? 0.5 * t / 8 : 0.5 * std::pow(0.5, t - 8); });
}

TEST(ScheduleTest, ErrorsNameTheSchedule) {
  EXPECT_THAT(message_of([] { nn::WarmUpLR(1, 0); }), HasSubstr("[WarmUpLR] 0 steps"));
  EXPECT_THAT(message_of([] {
                nn::PiecewiseConstantLR({3, 3}, {1, 2});
              }),
              HasSubstr("milestones are [3, 3]"));
  EXPECT_THAT(message_of([] {
                nn::PiecewiseConstantLR({3}, {1, 2});
              }),
              HasSubstr("1 milestones for 2"));
  EXPECT_THAT(message_of([] { nn::SequentialLR({nn::ConstantLR(1)}, {4}); }),
              HasSubstr("1 milestones between 1 schedules"));
}

TEST(ScheduleTest, AnOptimizerCountsStepsInEveryMode) {
  const nn::LearningRateSchedule schedule =
      nn::SequentialLR({nn::WarmUpLR(0.5f, 4), nn::CosineDecayLR(0.1f, 0.5f, 4)}, {4});
  auto run = [&](int how) {
    const Parameter p(Tensor::zeros({2}), "p");
    nn::SGD optimizer({p}, schedule);
    auto step = [optimizer](const Tensor& g) mutable { return ops::sum(optimizer({g})[0]); };
    const Tensor one = Tensor::ones({2});
    auto compiled = jit(step, at(JitLevel::kO0));
    if (how == 2) sink(compiled)(8, repeat(one));
    for (int i = 0; i < 8 && how < 2; ++i) how == 0 ? step(one) : compiled(one);
    EXPECT_EQ(optimizer.global_step().value().item<int32_t>(), 8);
    return p.value().to_host<float>();
  };
  double sum = 0.125 + 0.25 + 0.375;
  for (int t = 0; t < 4; ++t) sum += 0.1 + 0.2 * (1 + std::cos(t / 4.0 * 3.141592653589793));
  const std::vector<float> eager = run(0);
  EXPECT_NEAR(eager[0], -sum, 1e-5);
  EXPECT_EQ(run(1), eager);
  EXPECT_EQ(run(2), eager);
}

// ---- groups

TEST(GroupTest, HaveRatesAndDecaysOfTheirOwn) {
  const Parameter a(Tensor::ones({1}), "a"), b(Tensor::ones({1}), "b"), c(Tensor::ones({1}), "c");
  nn::SGD optimizer(std::vector<nn::ParameterGroup>{{{a}, 0.5}, {{b}, std::nullopt, 0.5f}, {{c}}},
                    0.1, 0, 0, 0.2f);
  const Tensor g = Tensor::ones({1});
  optimizer({g, g, g});
  EXPECT_NEAR(a.value().item<float>(), 1 - 0.5 * 1.2, 1e-6);
  EXPECT_NEAR(b.value().item<float>(), 1 - 0.1 * 1.5, 1e-6);
  EXPECT_NEAR(c.value().item<float>(), 1 - 0.1 * 1.2, 1e-6);
  EXPECT_THAT(message_of([&] { nn::SGD({a, a}); }), HasSubstr("parameter a is given twice"));
}

TEST(GroupTest, NormsDoNotDecayUnlessGrouped) {
  for (const bool is_grouped : {false, true}) {
    const Parameter w(Tensor::ones({1}), "w"), gamma(Tensor::ones({1}), "norm.gamma");
    const nn::ParameterGroups groups =
        is_grouped ? nn::ParameterGroups(std::vector<nn::ParameterGroup>{{{w, gamma}}})
                   : nn::ParameterGroups({w, gamma});
    nn::AdamWeightDecay optimizer(groups, 0.1, 0.9f, 0.999f, 1e-6f, 0.5f);
    optimizer({Tensor::zeros({1}), Tensor::zeros({1})});
    EXPECT_NEAR(w.value().item<float>(), 0.95, 1e-6);
    EXPECT_NEAR(gamma.value().item<float>(), is_grouped ? 0.95 : 1, 1e-6);
  }
}

TEST(GroupTest, SgdDampsAllButTheFirstGradient) {
  const Parameter p(Tensor::zeros({1}), "p");
  nn::SGD optimizer({p}, 1.0, 0.5f, 0.25f);
  const Tensor one = Tensor::ones({1});
  double accumulated = 0, expected = 0;
  for (int i = 0; i < 3; ++i) {
    accumulated = 0.5 * accumulated + (i == 0 ? 1 : 0.75);
    expected -= accumulated;
    optimizer({one});
    EXPECT_NEAR(p.value().item<float>(), expected, 1e-6);
  }
  EXPECT_THAT(message_of([&] { nn::SGD({p}, 1.0, 0, 0, 0, true); }), HasSubstr("[SGD] Nesterov"));
  nn::SGD scheduled({p}, nn::ConstantLR(1));
  EXPECT_THAT(message_of([&] { scheduled.set_learning_rate(1); }), HasSubstr("is a schedule"));
}

}  // namespace
}  // namespace ballast::tests
