// Losses, schedules, groups of parameters, the cells of a training step and mixed precision.
#include "frontend/ballast_frontend.h"
#include "frontend/test_support.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <string>

namespace ballast::tests {
namespace {

using testing::ElementsAre;
using testing::FloatNear;
using testing::HasSubstr;

JitOptions at(JitLevel level) {
  JitOptions options;
  options.level = level;
  return options;
}

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

// ---- the training step

struct Batch {
  Tensor x, y;
  Batch() {
    std::vector<float> pixels;
    std::vector<int32_t> digits;
    for (int i = 0; i < 16 * 8; ++i) pixels.push_back(std::sin(0.9f * static_cast<float>(i)));
    for (int i = 0; i < 16; ++i) digits.push_back(i * i % 4);
    x = Tensor::from_host(pixels, {16, 8});
    y = Tensor::from_host(digits, {16});
  }
};

nn::SequentialCell make_net() {
  set_seed(21);
  return nn::SequentialCell(nn::Dense(8, 32), nn::LayerNorm({32}), nn::GELU(), nn::Dense(32, 4));
}

std::vector<std::vector<uint8_t>> bytes_of(const std::vector<Parameter>& parameters) {
  std::vector<std::vector<uint8_t>> bytes;
  for (const Parameter& parameter : parameters) bytes.push_back(parameter.value().to_host_bytes());
  return bytes;
}

constexpr uint64_t kSteps = 6;

// Trains with what `make(net)` returns, and gives the losses and all parameters' bits.
template <class Make>
auto trained(const Make& make, int how, JitLevel level = JitLevel::kO0) {
  const Batch batch;
  auto net = make_net();
  auto cell = make(net);
  cell.set_train();
  std::vector<float> losses;
  auto compiled =
      jit([cell](const Tensor& x, const Tensor& y) mutable { return cell(x, y); }, at(level));
  if (how == 2)
    losses = sink(compiled)(kSteps, repeat(batch.x), repeat(batch.y)).template to_host<float>();
  for (uint64_t i = 0; i < kSteps && how < 2; ++i) {
    losses.push_back(
        (how == 0 ? cell(batch.x, batch.y) : compiled(batch.x, batch.y)).template item<float>());
  }
  return std::pair(losses, bytes_of(cell.parameters()));
}

auto one_step(nn::SequentialCell net) {
  return nn::TrainOneStepCell(nn::WithLossCell(net, nn::CrossEntropyLoss()),
                              nn::Adam(net.trainable_params(), 0.01), 1, nn::ClipByGlobalNorm(0.5));
}

TEST(TrainOneStepTest, IsTheSameInEveryModeAndByHand) {
  const auto eager = trained(one_step, 0);
  EXPECT_LT(eager.first.back(), eager.first.front());
  EXPECT_EQ(trained(one_step, 1), eager);
  EXPECT_EQ(trained(one_step, 2), eager);

  const Batch batch;
  auto net = make_net();
  nn::Adam optimizer(net.trainable_params(), 0.01);
  auto forward = [net](const Tensor& x, const Tensor& y) mutable {
    return nn::CrossEntropyLoss()(net(x), y);
  };
  auto gradients = value_and_grad(forward, std::nullopt, optimizer.parameters());
  std::vector<float> losses;
  for (uint64_t i = 0; i < kSteps; ++i) {
    auto [loss, grads] = gradients(batch.x, batch.y);
    optimizer(ops::clip_by_global_norm(grads, 0.5));
    losses.push_back(loss.item<float>());
  }
  EXPECT_EQ(losses, eager.first);
}

TEST(TrainOneStepTest, IsCompiledAsAWholeInGraphMode) {
  const auto eager = trained(one_step, 0);
  set_context({Mode::kGraph, JitLevel::kO0, {}, {}});
  const auto graph = trained(one_step, 0);
  set_context({Mode::kPyNative, JitLevel::kO1, {}, {}});
  EXPECT_EQ(graph, eager);
}

TEST(TrainOneStepTest, HoldsAllThatACheckpointNeeds) {
  auto step = one_step(make_net());
  const auto names = step.parameters_dict();
  for (const char* name :
       {"0.weight", "1.gamma", "moment1.0.weight", "beta2_power", "learning_rate"}) {
    EXPECT_EQ(names.count(name), 1u) << name;
  }
  EXPECT_EQ(step.trainable_params().size(), 6u);
}

TEST(TrainOneStepTest, SensScalesGradientsOnly) {
  auto weights = [](float sens) {
    const Batch batch;
    auto net = make_net();
    nn::TrainOneStepCell step(nn::WithLossCell(net, nn::CrossEntropyLoss()),
                              nn::SGD(net.trainable_params(), 0.125 / sens), sens);
    const float loss = step(batch.x, batch.y).item<float>();
    return std::pair(loss, net.parameters()[0].value().to_host<float>());
  };
  const auto plain = weights(1), scaled = weights(4);
  EXPECT_EQ(plain.first, scaled.first);
  EXPECT_THAT(scaled.second, testing::Pointwise(FloatNear(1e-6f), plain.second));
}

// ---- frozen parameters

TEST(FrozenParameterTest, IsLeftOutOfWhatIsTrainedFromThenOn) {
  nn::SequentialCell net(nn::Dense(3, 4), nn::Dense(4, 1));
  const Parameter weight = net.parameters_dict().at("0.weight");
  nn::SGD all(net.trainable_params(), 0.5);
  EXPECT_TRUE(weight.requires_grad());
  weight.set_requires_grad(false);
  EXPECT_FALSE(net.parameters_dict().at("0.weight").requires_grad());  // copies share it
  EXPECT_EQ(net.trainable_params().size(), 3u);
  EXPECT_EQ(net.untrainable_params(), std::vector<Parameter>{weight});
  EXPECT_EQ(net.parameters().size(), 4u);

  nn::SGD some(net.trainable_params(), 0.5);
  const Tensor x = Tensor::ones({2, 3});
  auto loss = [&](const Tensor& in) { return ops::mean(net(in)); };
  const auto before = weight.value().to_host<float>();
  const auto bias = net.parameters_dict().at("0.bias");
  const auto bias_before = bias.value().to_host<float>();
  some(grad(loss, std::nullopt, some.parameters())(x));
  EXPECT_EQ(weight.value().to_host<float>(), before);
  EXPECT_NE(bias.value().to_host<float>(), bias_before);
  all(grad(loss, std::nullopt, all.parameters())(x));  // made before: it still has the weight
  EXPECT_NE(weight.value().to_host<float>(), before);

  weight.set_requires_grad(true);
  EXPECT_EQ(net.trainable_params().size(), 4u);
  EXPECT_EQ(nn::SGD(net.trainable_params(), 0.5).parameters(), net.parameters());
}

// ---- mixed precision

TEST(MixedPrecisionTest, CastsByTheLists) {
  auto net = make_net();
  auto mixed = amp::auto_mixed_precision(net);
  const Program program = trace(
      [&](const std::vector<Tensor>& x) { return std::vector<Tensor>{ops::softmax(mixed(x[0]))}; },
      {{DType::kF32, {16, 8}}});
  verify(program);
  EXPECT_EQ(program.outputs[0].type().dtype, DType::kF32);
  int products = 0;
  for (const Equation& equation : program.equations) {
    const DType dtype = equation.outputs[0]->type.dtype;
    if (equation.primitive == "matmul" || equation.primitive == "gelu_tanh") {
      EXPECT_EQ(dtype, equation.primitive == "matmul" ? DType::kBF16 : DType::kF32);
      ++products;
    }
    if (equation.primitive == "layer_norm") {
      EXPECT_EQ(dtype, DType::kF32);
    }
  }
  EXPECT_EQ(products, 3);
  const Batch batch;
  EXPECT_THAT(mixed(batch.x).to_host<float>(),
              testing::Pointwise(FloatNear(0.05f), net(batch.x).to_host<float>()));
  EXPECT_THAT(message_of([&] { amp::auto_mixed_precision(net, DType::kF32)(batch.x); }),
              HasSubstr("[auto_mixed_precision] f32 is not bf16 or f16"));
}

TEST(MixedPrecisionTest, CastsFunctionsAndTheirGradients) {
  auto f = amp::auto_mixed_precision([](const Tensor& a, const Tensor& b) {
    return ops::sum(ops::relu(ops::matmul(a, b)) * 2.0f);
  });
  const Tensor a = Tensor::ones({4, 8}), b = Tensor::full({8, 4}, 0.5);
  EXPECT_EQ(f(a, b).item<float>(), 4 * 4 * 8);
  const Tensor gradient = grad(f)(a, b);
  EXPECT_EQ(gradient.dtype(), DType::kF32);
  EXPECT_THAT(gradient.to_host<float>(), testing::Each(4.0f));
}

// The primitives in a program and in the bodies of its control flow, with their results' types.
std::multimap<std::string, DType> made_by(const Program& program) {
  std::multimap<std::string, DType> made;
  for (const Equation& equation : program.equations) {
    made.emplace(equation.primitive, equation.outputs[0]->type.dtype);
    for (const auto& body : equation.bodies) made.merge(made_by(*body));
  }
  return made;
}

TEST(MixedPrecisionTest, ReachesTheBodiesOfControlFlow) {
  const Parameter w(Tensor::full({8, 8}, 0.125), "w");
  auto f = [&](const Tensor& x) {
    Tensor y = fori_loop(
        0, 3, [&](Tensor, Tensor c) { return ops::tanh(ops::matmul(c, w)); }, x);
    y = cond(
        ops::less(ops::sum(x), 0), [&] { return y; }, [&] { return ops::matmul(y, w); });
    return while_loop([](Tensor c) { return ops::less(ops::sum(ops::matmul(c, c)), 100); },
                      [&](Tensor c) { return ops::matmul(c, w) * 3.0f; }, y);
  };
  auto mixed = amp::auto_mixed_precision(f);
  const Program program =
      trace([&](const std::vector<Tensor>& x) { return std::vector<Tensor>{mixed(x[0])}; },
            {{DType::kF32, {8, 8}}});
  verify(program);
  const auto made = made_by(program);
  EXPECT_EQ(made.count("matmul"), 4u);
  for (auto [first, last] = made.equal_range("matmul"); first != last; ++first) {
    EXPECT_EQ(first->second, DType::kBF16);
  }
  for (const char* name : {"scan", "cond", "while"}) {
    EXPECT_EQ(made.find(name)->second, DType::kF32) << name;
  }
  const Tensor x = Tensor::full({8, 8}, 0.5);
  const std::vector<float> exact = f(x).to_host<float>();
  EXPECT_THAT(mixed(x).to_host<float>(), testing::Pointwise(testing::FloatNear(0.05f), exact));
  JitOptions by_kernel;
  by_kernel.level = JitLevel::kO0;
  EXPECT_EQ(jit(mixed, by_kernel)(x).to_host<float>(), mixed(x).to_host<float>());
  auto loss = [&](const Tensor& at) { return ops::mean(mixed(at)); };
  const Tensor gradient = grad(loss)(x);
  EXPECT_EQ(gradient.dtype(), DType::kF32);
  const Tensor exact_gradient = grad([&](const Tensor& at) { return ops::mean(f(at)); })(x);
  EXPECT_THAT(gradient.to_host<float>(),
              testing::Pointwise(testing::FloatNear(0.01f), exact_gradient.to_host<float>()));
}

TEST(MixedPrecisionTest, TrainsTheSameInEveryMode) {
  auto make = [](nn::SequentialCell net) {
    auto mixed = amp::auto_mixed_precision(net);
    return nn::TrainOneStepCell(nn::WithLossCell(mixed, nn::CrossEntropyLoss()),
                                nn::Adam(net.trainable_params(), 0.01));
  };
  const auto eager = trained(make, 0);
  EXPECT_LT(eager.first.back(), 0.95 * eager.first.front());
  EXPECT_EQ(trained(make, 1), eager);
  EXPECT_EQ(trained(make, 2), eager);
}

TEST(LossScaleTest, GrowsAfterAWindowAndShrinksAfterAnOverflow) {
  amp::DynamicLossScaler scaler(8, 2, 2);
  const Tensor yes = Tensor::scalar(1, DType::kBool), no = Tensor::scalar(0, DType::kBool);
  std::vector<float> scales;
  for (const Tensor& finite : {yes, yes, yes, no, yes, yes, no, no, no, no, no, no}) {
    scaler.adjust(finite);
    scales.push_back(scaler.scale_value().item<float>());
  }
  EXPECT_THAT(scales, ElementsAre(8, 16, 16, 8, 8, 16, 8, 4, 2, 1, 1, 1));
  EXPECT_THAT(message_of([] { amp::DynamicLossScaler(8, 1); }), HasSubstr("factor 1"));
}

TEST(LossScaleTest, ScalesOfTwoChangeNothingButTheRange) {
  auto with = [](nn::SequentialCell net) {
    return amp::TrainOneStepWithLossScaleCell(nn::WithLossCell(net, nn::CrossEntropyLoss()),
                                              nn::Adam(net.trainable_params(), 0.01),
                                              amp::StaticLossScaler(1024));
  };
  auto without = [](nn::SequentialCell net) {
    return nn::TrainOneStepCell(nn::WithLossCell(net, nn::CrossEntropyLoss()),
                                nn::Adam(net.trainable_params(), 0.01));
  };
  EXPECT_EQ(trained(with, 0), trained(without, 0));
}

TEST(LossScaleTest, AnOverflowingStepIsLeftOutInEveryMode) {
  auto make = [](nn::SequentialCell net) {
    // 2^127 times a gradient is infinite: some steps are left out before the scale fits.
    return amp::TrainOneStepWithLossScaleCell(nn::WithLossCell(net, nn::CrossEntropyLoss("sum")),
                                              nn::Adam(net.trainable_params(), 0.01),
                                              amp::DynamicLossScaler(0x1p127f, 0x1p40f, 1000));
  };
  const auto eager = trained(make, 0);
  EXPECT_EQ(eager.first[0], eager.first[1]);
  EXPECT_LT(eager.first.back(), eager.first.front());
  EXPECT_EQ(trained(make, 1), eager);
  EXPECT_EQ(trained(make, 2), eager);
}

}  // namespace
}  // namespace ballast::tests
