// set_context({GRAPH_MODE}): calls of cells, gradient functions and optimizers are compiled, once
// per signature, and give the bits they give op by op.
#include "frontend/ballast_frontend.h"
#include "frontend/test_support.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ballast::tests {
namespace {

using testing::HasSubstr;
using Bytes = std::vector<uint8_t>;

// Kernel by kernel, so that bits can be compared with eager ones.
class GraphModeTest : public testing::Test {
 protected:
  void SetUp() override { set_seed(7); }
  void TearDown() override { set_context({PYNATIVE_MODE, JitLevel::kO1}); }
  static void enter() { set_context({GRAPH_MODE, JitLevel::kO0}); }
};

// A cell of cells with a parameter of its own, dropout, and statistics that a call updates.
struct Block : nn::Cell {
  nn::Dense fc{6, 6};
  nn::BatchNorm2d norm{6};
  nn::Dropout dropout{0.5f};
  Parameter gain;

  Block() {
    add("fc", fc);
    add("norm", norm);
    add("dropout", dropout);
    gain = add("gain", Tensor::full({6}, 1.5));
  }
  using nn::Cell::construct;
  Tensor construct(const Tensor& x) override {
    const Tensor rows = ops::reshape(fc(x), {x.shape()[0], 6, 1, 1});
    return dropout(ops::reshape(norm(rows), x.shape())) * gain + x;
  }
};

struct Net : nn::Cell {
  nn::SequentialCell blocks{Block(), nn::ReLU(), Block()};
  nn::Dense head{6, 2};

  Net() {
    add("blocks", blocks);
    add("head", head);
  }
  using nn::Cell::construct;
  Tensor construct(const Tensor& x) override { return head(blocks(x)); }
  Tensor construct(const Tensor& x, const Tensor& scale) override { return construct(x) * scale; }
};

Tensor input(int64_t rows = 4) { return nn::uniform({rows, 6}, -1, 1); }

// What a call costs the host.
template <class Call>
uint64_t host_calls(Call&& call) {
  const uint64_t before = counters().host_calls;
  call();
  return counters().host_calls - before;
}

TEST_F(GraphModeTest, EagerIsTheDefault) {
  EXPECT_EQ(execution_mode(), PYNATIVE_MODE);
  Net net;
  net(input());
  EXPECT_EQ(net.compile_count(), 0u);
}

TEST_F(GraphModeTest, ACallOfACellIsOneHostCallAndCompiledOncePerSignature) {
  Net net;
  const Tensor x = input(), more = input(5);
  const Bytes eager = net(x).to_host_bytes(), scaled = net(x, 2).to_host_bytes();
  enter();
  EXPECT_EQ(net(x).to_host_bytes(), eager);
  EXPECT_EQ(net.retrace_reason(), "it is the first call");
  EXPECT_EQ(host_calls([&] { net(x); }), 1u);
  EXPECT_EQ(net.compile_count(), 1u);
  net(more);
  EXPECT_EQ(net.retrace_reason(), "argument 0 is f32[5, 6], was f32[4, 6]");
  EXPECT_EQ(net(x, 2).to_host_bytes(), scaled);
  EXPECT_EQ(net.retrace_reason(), "it is given 2 arguments, was given 1");
  EXPECT_EQ(net.compile_count(), 3u);
  EXPECT_EQ(net.blocks.compile_count(), 0u);  // what lies inside is part of the outermost call
  set_context({PYNATIVE_MODE});
  EXPECT_EQ(net(x).to_host_bytes(), eager);
  EXPECT_EQ(net.compile_count(), 3u);
}

TEST_F(GraphModeTest, ParametersThatChangeCompileNothingAnew) {
  Net net;
  const Tensor x = input();
  enter();
  net(x);
  const Parameter weight = net.head.weight();
  weight.assign(Tensor::zeros(weight.shape()));
  const Tensor y = net(x);
  EXPECT_EQ(net.compile_count(), 1u);
  const Tensor bias = ops::broadcast_to(net.head.bias(), {4, 2});
  EXPECT_EQ(y.to_host<float>(), bias.to_host<float>());
}

TEST_F(GraphModeTest, TrainingTracesAnewAndUpdatesStatistics) {
  const Tensor x = input();
  auto trained = [&](Mode mode) {
    set_context({mode, JitLevel::kO0});
    set_seed(3);
    Net net;
    net(x);
    net.set_train();
    std::vector<Bytes> results{net(x).to_host_bytes(), net(x).to_host_bytes()};
    if (mode == GRAPH_MODE) {
      EXPECT_EQ(net.retrace_reason(),
                "BatchNorm2d's training flag is on, was off; Dropout's training flag is on, was "
                "off");
    }
    net.set_train(false);
    results.push_back(net(x).to_host_bytes());
    for (const Parameter& p : net.parameters()) results.push_back(p.value().to_host_bytes());
    EXPECT_EQ(net.compile_count(), mode == GRAPH_MODE ? 2u : 0u);
    return results;
  };
  const auto eager = trained(PYNATIVE_MODE), graph = trained(GRAPH_MODE);
  EXPECT_EQ(graph, eager);
  EXPECT_NE(eager[0], eager[1]);  // dropout draws anew
}

TEST_F(GraphModeTest, GradientFunctionsAreCompiledAsAWhole) {
  Net net;
  const Tensor x = input();
  auto loss = [&](const Tensor& t) { return std::pair(ops::sum(ops::tanh(net(t))), t); };
  auto gradients = value_and_grad(loss, 0, net.trainable_params(), /*has_aux=*/true);
  auto bytes = [&] {
    auto [value, grads] = gradients(x);
    std::vector<Bytes> all{value.first.to_host_bytes(), value.second.to_host_bytes(),
                           grads.first.to_host_bytes()};
    for (const Tensor& grad : grads.second) all.push_back(grad.to_host_bytes());
    return all;
  };
  const auto eager = bytes();
  enter();
  EXPECT_EQ(bytes(), eager);
  EXPECT_EQ(host_calls([&] { gradients(x); }), 1u);
  EXPECT_EQ(net.compile_count(), 0u);
  // Of a gradient, in one call as well.
  auto second = grad([&](const Tensor& t) {
    return ops::sum(grad([&](const Tensor& u) { return loss(u).first; })(t) * t);
  });
  const Bytes graph = second(x).to_host_bytes();
  EXPECT_EQ(host_calls([&] { second(x); }), 1u);
  set_context({PYNATIVE_MODE});
  EXPECT_EQ(second(x).to_host_bytes(), graph);
}

TEST_F(GraphModeTest, ATrainingLoopIsTwoHostCallsPerStepWithTheBitsOfEager) {
  auto trained = [](Mode mode) {
    set_context({mode, JitLevel::kO0});
    set_seed(5);
    Net net;
    net.set_train();
    nn::CrossEntropyLoss loss_fn;
    nn::Adam optimizer(net.trainable_params(), nn::ExponentialDecayLR(0.01, 0.5, 2));
    auto forward = [&](const Tensor& x, const Tensor& y) { return loss_fn(net(x), y); };
    auto gradients = value_and_grad(forward, std::nullopt, optimizer.parameters());
    const Tensor labels = Tensor::from_host<int32_t>({0, 1, 1, 0}, {4}), x = input();
    std::vector<Bytes> results;
    auto step = [&] {
      auto [loss, grads] = gradients(x, labels);
      optimizer(grads);
      return loss;
    };
    for (int i = 0; i < 4; ++i) results.push_back(step().to_host_bytes());
    if (mode == GRAPH_MODE) {
      EXPECT_EQ(host_calls(step), 2u);
    }
    if (mode == PYNATIVE_MODE) step();
    for (const Parameter& p : net.parameters()) results.push_back(p.value().to_host_bytes());
    for (const Parameter& p : optimizer.states()) results.push_back(p.value().to_host_bytes());
    return results;
  };
  EXPECT_EQ(trained(GRAPH_MODE), trained(PYNATIVE_MODE));
}

TEST_F(GraphModeTest, ErrorsNameTheLineOfTheCall) {
  Net net;
  enter();
  int line = 0;
  const std::string message = message_of(BALLAST_INVALID_ARGUMENT, [&] {
    line = __LINE__ + 1;
    net(Tensor::zeros({2, 5}));
  });
  EXPECT_THAT(message, HasSubstr("(at graph_mode_test.cpp:" + std::to_string(line) + ")"));
  EXPECT_EQ(net(input()).shape(), (Shape{4, 2}));  // nothing half compiled is kept
}

}  // namespace
}  // namespace ballast::tests
