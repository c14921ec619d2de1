// The cells of a training step, frozen parameters and mixed precision.
#include "frontend/ballast_frontend.h"
#include "frontend/test_support.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace ballast::tests {
namespace {

using testing::ElementsAre;
using testing::FloatNear;
using testing::HasSubstr;

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
