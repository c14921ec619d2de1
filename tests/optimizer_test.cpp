// nn's optimizers: a regression trained with each, in every mode, against the same training in
// double precision with plain loops; and clipping and checks as a training step uses them.
#include "frontend/ballast_frontend.h"
#include "frontend/test_support.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

namespace ballast::tests {
namespace {

using testing::HasSubstr;

constexpr int64_t kRows = 24, kInputs = 5, kOutputs = 3;
constexpr uint64_t kSteps = 40;

std::vector<float> values(uint64_t count, double phase) {
  std::vector<float> result;
  for (uint64_t i = 0; i < count; ++i) {
    result.push_back(static_cast<float>(std::sin(1.3 * static_cast<double>(i) + phase)));
  }
  return result;
}

struct Problem {
  std::vector<float> x = values(kRows * kInputs, 0.2), y = values(kRows * kOutputs, 1.1);
  std::vector<float> weight = values(kInputs * kOutputs, 2.5), bias = values(kOutputs, 0.7);
};

// One element's step in double: its value and states m, v; gradient; step number from 1.
struct Element {
  double p, m = 0, v = 0;
};
using Rule = std::function<void(Element&, double gradient, double t)>;

// Losses of minimising mean((x w + b - y)^2).
std::vector<double> reference_losses(const Rule& rule) {
  const Problem problem;
  std::vector<Element> w, b;
  for (float value : problem.weight) w.push_back({value});
  for (float value : problem.bias) b.push_back({value});
  std::vector<double> losses;
  for (uint64_t step = 1; step <= kSteps; ++step) {
    std::vector<double> dw(w.size()), db(b.size());
    double loss = 0;
    for (int64_t r = 0; r < kRows; ++r) {
      for (int64_t o = 0; o < kOutputs; ++o) {
        double error = b[o].p - problem.y[r * kOutputs + o];
        for (int64_t i = 0; i < kInputs; ++i) {
          error += problem.x[r * kInputs + i] * w[i * kOutputs + o].p;
        }
        loss += error * error / (kRows * kOutputs);
        const double d = 2 * error / (kRows * kOutputs);
        db[o] += d;
        for (int64_t i = 0; i < kInputs; ++i)
          dw[i * kOutputs + o] += d * problem.x[r * kInputs + i];
      }
    }
    losses.push_back(loss);
    for (size_t k = 0; k < w.size(); ++k) rule(w[k], dw[k], static_cast<double>(step));
    for (size_t k = 0; k < b.size(); ++k) rule(b[k], db[k], static_cast<double>(step));
  }
  return losses;
}

using Make = std::function<std::shared_ptr<nn::Optimizer>(std::vector<Parameter>)>;

// A step that returns the loss before it.
auto make_step(const Make& make, double clip_norm = 0) {
  const Problem problem;
  Parameter w(Tensor::from_host(problem.weight, {kInputs, kOutputs}), "w");
  Parameter b(Tensor::from_host(problem.bias, {kOutputs}), "b");
  std::shared_ptr<nn::Optimizer> optimizer = make({w, b});
  auto loss = [w, b](const Tensor& x, const Tensor& y) {
    return ops::mean(ops::square(ops::matmul(x, w) + b - y));
  };
  auto gradients = value_and_grad(loss, std::nullopt, std::vector<Parameter>{w, b});
  return [=](const Tensor& x, const Tensor& y) mutable {
    auto [value, grads] = gradients(x, y);
    if (clip_norm > 0) grads = ops::clip_by_global_norm(grads, clip_norm);
    return depend(value, (*optimizer)(grads));
  };
}

template <class Step>
std::vector<float> losses_of(Step step) {
  const Problem problem;
  const Tensor x = Tensor::from_host(problem.x, {kRows, kInputs});
  const Tensor y = Tensor::from_host(problem.y, {kRows, kOutputs});
  std::vector<float> losses;
  for (uint64_t i = 0; i < kSteps; ++i) losses.push_back(step(x, y).template item<float>());
  return losses;
}

template <class Step>
std::vector<float> sunk_losses_of(Step step, JitLevel level) {
  const Problem problem;
  const Tensor x = Tensor::from_host(problem.x, {kRows, kInputs});
  const Tensor y = Tensor::from_host(problem.y, {kRows, kOutputs});
  return sink(jit(step, at(level)))(kSteps, repeat(x), repeat(y)).template to_host<float>();
}

void expect_training(const Make& make, const std::vector<double>& expected) {
  const std::vector<float> eager = losses_of(make_step(make));
  for (uint64_t i = 0; i < kSteps; ++i) {
    ASSERT_NEAR(eager[i], expected[i], 1e-4 * expected[i]) << "step " << i;
  }
  EXPECT_LT(eager.back(), 0.9 * eager.front());
  EXPECT_EQ(losses_of(jit(make_step(make), at(JitLevel::kO0))), eager);
  EXPECT_EQ(sunk_losses_of(make_step(make), JitLevel::kO0), eager);
  const std::vector<float> fused = losses_of(jit(make_step(make), at(JitLevel::kO1)));
  EXPECT_EQ(sunk_losses_of(make_step(make), JitLevel::kO1), fused);
  for (uint64_t i = 0; i < kSteps; ++i) ASSERT_NEAR(fused[i], expected[i], 1e-4 * expected[i]);
}

template <class Optimizer, class... Options>
Make optimizer_of(Options... options) {
  return [=](std::vector<Parameter> parameters) {
    return std::make_shared<Optimizer>(std::move(parameters), options...);
  };
}

constexpr double kRate = 0.05, kBeta1 = 0.9, kBeta2 = 0.99;

void move_moments(Element& e, double g) {
  e.m = kBeta1 * e.m + (1 - kBeta1) * g;
  e.v = kBeta2 * e.v + (1 - kBeta2) * g * g;
}

TEST(OptimizerTest, Sgd) {
  expect_training(
      optimizer_of<nn::SGD>(0.1f, 0.0f, 0.0f, 0.01f),
      reference_losses([](Element& e, double g, double) { e.p -= 0.1 * (g + 0.01 * e.p); }));
}

TEST(OptimizerTest, MomentumWithAndWithoutNesterov) {
  for (bool is_nesterov : {false, true}) {
    expect_training(optimizer_of<nn::Momentum>(0.05f, 0.8f, 0.0f, is_nesterov),
                    reference_losses([=](Element& e, double g, double) {
                      e.m = 0.8 * e.m + g;
                      e.p -= 0.05 * (is_nesterov ? g + 0.8 * e.m : e.m);
                    }));
  }
}

TEST(OptimizerTest, AdamWithAndWithoutNesterov) {
  for (bool is_nesterov : {false, true}) {
    expect_training(optimizer_of<nn::Adam>(0.05f, 0.9f, 0.99f, 1e-6f, 0.01f, is_nesterov),
                    reference_losses([=](Element& e, double g, double t) {
                      g += 0.01 * e.p;
                      move_moments(e, g);
                      const double rate =
                          kRate * std::sqrt(1 - std::pow(kBeta2, t)) / (1 - std::pow(kBeta1, t));
                      const double direction = is_nesterov ? kBeta1 * e.m + (1 - kBeta1) * g : e.m;
                      e.p -= rate * direction / (std::sqrt(e.v) + 1e-6);
                    }));
  }
}

TEST(OptimizerTest, AdamWeightDecay) {
  expect_training(optimizer_of<nn::AdamWeightDecay>(0.05f, 0.9f, 0.99f, 1e-6f, 0.02f),
                  reference_losses([](Element& e, double g, double) {
                    move_moments(e, g);
                    e.p -= kRate * (e.m / (std::sqrt(e.v) + 1e-6) + 0.02 * e.p);
                  }));
}

TEST(OptimizerTest, AdamW) {
  expect_training(optimizer_of<nn::AdamW>(0.05f, 0.9f, 0.99f, 1e-6f, 0.02f),
                  reference_losses([](Element& e, double g, double t) {
                    move_moments(e, g);
                    const double m = e.m / (1 - std::pow(kBeta1, t));
                    const double v = e.v / (1 - std::pow(kBeta2, t));
                    e.p -= kRate * (m / (std::sqrt(v) + 1e-6) + 0.02 * e.p);
                  }));
}

TEST(OptimizerTest, ManyParametersTakeFewLaunches) {
  std::vector<Parameter> parameters;
  std::vector<Tensor> gradients;
  for (int64_t i = 0; i < 70; ++i) {  // more than one call takes
    parameters.emplace_back(Tensor::ones({16 * (i + 1)}), "p" + std::to_string(i));
    gradients.push_back(Tensor::ones({16 * (i + 1)}));
  }
  nn::AdamW optimizer(parameters, 0.5f, 0.9f, 0.999f, 1e-8f, 0.0f);
  optimizer(gradients);
  synchronize();
  const Counters before = counters();
  optimizer(gradients);
  synchronize();
  // Two for the powers, a ninth for the six of the second call.
  EXPECT_EQ(counters().kernel_launches - before.kernel_launches, 2u + 8u + 1u);
  for (const Parameter& parameter : parameters) {
    for (float value : parameter.value().to_host<float>()) ASSERT_NEAR(value, 0, 1e-5);
  }
}

TEST(OptimizerTest, BFloat16ParametersKeepMomentsInF32) {
  Parameter p(Tensor::full({20}, 1, DType::kBF16), "p"), q(Tensor::full({3}, 1), "q");
  nn::Adam optimizer({p, q}, 0.25f);
  for (const Parameter& state : optimizer.states()) EXPECT_EQ(state.type().dtype, DType::kF32);
  optimizer({Tensor::full({20}, 1, DType::kBF16), Tensor::full({3}, 1)});
  EXPECT_EQ(p.value().dtype(), DType::kBF16);
  EXPECT_THAT(q.value().to_host<float>(), testing::Each(testing::FloatNear(0.75f, 1e-6f)));
}

TEST(ClipTest, GlobalNormScalesAllTensorsTogether) {
  const std::vector<Tensor> tensors = {Tensor::full({3}, 2), Tensor::full({13}, 1)};
  EXPECT_NEAR(ops::global_norm(tensors).item<float>(), 5, 1e-6);
  const auto clipped = ops::clip_by_global_norm(tensors, 1);
  EXPECT_THAT(clipped[0].to_host<float>(), testing::Each(testing::FloatNear(0.4f, 1e-6f)));
  EXPECT_THAT(clipped[1].to_host<float>(), testing::Each(testing::FloatNear(0.2f, 1e-6f)));
  EXPECT_EQ(ops::clip_by_global_norm(tensors, 6)[0].to_host<float>(), tensors[0].to_host<float>());
  const auto halved = ops::clip_by_global_norm(tensors, 5, Tensor::scalar(10));
  EXPECT_THAT(halved[0].to_host<float>(), testing::Each(1.0f));
  EXPECT_TRUE(ops::clip_by_global_norm({}, 1).empty());
  std::vector<Tensor> many(150, Tensor::full({2}, 1));
  EXPECT_NEAR(ops::global_norm(many).item<float>(), std::sqrt(300.0), 1e-4);
  EXPECT_TRUE(ops::all_finite(many).item<bool>());
  many[149] = Tensor::full({2}, INFINITY);
  EXPECT_FALSE(ops::all_finite(many).item<bool>());
}

TEST(ClipTest, NormAndValueOfOneTensor) {
  const Tensor x = Tensor::from_host<float>({3, 4, 0, 0.3f, 0.4f, 0}, {2, 3});
  EXPECT_THAT(ops::clip_by_norm(x, 1, {1}).to_host<float>(),
              testing::Pointwise(testing::FloatNear(1e-6f),
                                 std::vector<float>{0.6f, 0.8f, 0, 0.3f, 0.4f, 0}));
  EXPECT_EQ(ops::clip_by_norm(x, 9).to_host<float>(), x.to_host<float>());
  EXPECT_EQ(ops::clip_by_value(x, 0.35, 3.5).to_host<float>(),
            (std::vector<float>{3, 3.5f, 0.35f, 0.35f, 0.4f, 0.35f}));
  const Tensor narrow = ops::clip_by_norm(ops::cast(x * 100.0, DType::kF16), 1, {1});
  EXPECT_EQ(narrow.dtype(), DType::kF16);
  EXPECT_NEAR(narrow.to_host<float>()[0], 0.6, 1e-3);
  auto f = [](Tensor t) { return ops::sum(ops::clip_by_norm(t, 1)); };
  EXPECT_EQ(grad(f)(Tensor::zeros({2})).to_host<float>(), (std::vector<float>{1, 1}));
}

TEST(ClipTest, GradientsByValue) {
  const Parameter p(Tensor::zeros({3}), "p");
  nn::SGD optimizer({p}, 1.0);
  optimizer(nn::ClipByValue(-1, 2)({Tensor::from_host<float>({-5, 5, 0.5f}, {3})}));
  EXPECT_THAT(p.value().to_host<float>(), testing::ElementsAre(1, -2, -0.5f));
}

TEST(ClipTest, AClippedTrainingStepIsTheSameInEveryMode) {
  const Make make = optimizer_of<nn::SGD>(0.5f, 0.0f);
  const std::vector<float> eager = losses_of(make_step(make, 0.3));
  EXPECT_LT(eager.back(), 0.9 * eager.front());
  EXPECT_NE(eager, losses_of(make_step(make)));
  EXPECT_EQ(losses_of(jit(make_step(make, 0.3), at(JitLevel::kO0))), eager);
  EXPECT_EQ(sunk_losses_of(make_step(make, 0.3), JitLevel::kO0), eager);
}

TEST(OptimizerErrorsTest, NameWhatWasGiven) {
  const Tensor p = Tensor::ones({3}), other = Tensor::ones({4}), s = Tensor::scalar(0.1);
  EXPECT_THAT(message_of([&] { ops::apply_adam(p, p, other, p, s, s, s, s, s, s); }),
              HasSubstr("[apply_adam] v (input 2) needs the parameter's type f32[3]"));
  EXPECT_THAT(message_of([&] { ops::apply_adam_weight_decay(p, p, p, p, s, p, s, s, s); }),
              HasSubstr("[apply_adam_weight_decay] beta1 (input 5) needs f32[]"));
  EXPECT_THAT(message_of([&] {
                ops::call("apply_gradient_descent", {p, p, p, s});
              }),
              HasSubstr("takes 2 inputs per tensor and 1 scalars, got 4 inputs"));
  EXPECT_THAT(message_of([&] { ops::clip_by_global_norm({p}, 0); }),
              HasSubstr("[clip_by_global_norm] clip_norm is 0, expected it positive"));
  EXPECT_THAT(message_of([&] { ops::clip_by_norm(p, -1); }),
              HasSubstr("[clip_by_norm] clip_norm is -1, expected it positive"));
  EXPECT_THAT(message_of([&] { ops::global_norm({Tensor::full({2}, 1, DType::kI32)}); }),
              HasSubstr("[global_norm] has no kernel for i32"));
}

}  // namespace
}  // namespace ballast::tests
