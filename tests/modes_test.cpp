// One program in every mode: eager, jit and sink agree bit for bit at one optimization level.
#include "frontend/ballast_frontend.h"
#include "frontend/test_support.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace ballast::tests {
namespace {

using Bytes = std::vector<uint8_t>;

std::vector<Tensor> random_inputs(uint64_t seed) {
  set_seed(seed);
  std::vector<Tensor> inputs = {nn::uniform({4, 6}, -1, 1), nn::uniform({4, 6}, -1, 1),
                                nn::uniform({6}, -1, 1)};
  const DType dtypes[] = {DType::kF32, DType::kBF16, DType::kF16};
  for (Tensor& input : inputs) input = ops::cast(input, dtypes[seed % 3]);
  return inputs;
}

// A program of a dozen random ops over [4, 6] tensors; the same seed gives the same one. A third
// of the seeds each is in f32, bf16 and f16.
std::vector<Tensor> random_program(uint64_t seed, const std::vector<Tensor>& inputs) {
  std::mt19937_64 generator(seed);
  std::vector<Tensor> pool = inputs;
  auto pick = [&]() -> Tensor { return pool[generator() % pool.size()]; };
  for (int i = 0; i < 12; ++i) {
    Tensor a = pick();
    switch (generator() % 9) {
      case 0:
        pool.push_back(a + pick());
        break;
      case 1:
        pool.push_back(a * pick());
        break;
      case 2:
        pool.push_back(ops::tanh(a));
        break;
      case 3:
        pool.push_back(ops::maximum(a, pick()) - 0.5f);
        break;
      case 4:
        pool.push_back(ops::sigmoid(a) * 2.0f);
        break;
      case 5:
        pool.push_back(ops::broadcast_to(ops::mean(a, {-1}, true), a.shape()));
        break;
      case 6:
        pool.push_back(ops::select(ops::less(a, pick()), a, 0.25f));
        break;
      case 7:
        pool.push_back(ops::relu(a) / (ops::exp(ops::neg(ops::abs(pick()))) + 1.0f));
        break;
      default: {
        Tensor rows = ops::broadcast_to(a, {4, 6});
        pool.push_back(ops::matmul(ops::matmul(rows, rows, true, false), rows, false, true));
        pool.back() = ops::transpose(pool.back()) * 0.1f;
      }
    }
  }
  return {pool.back(), ops::sum(pool[pool.size() - 2]), inputs[0]};
}

std::vector<Bytes> bytes_of(const std::vector<Tensor>& tensors) {
  std::vector<Bytes> bytes;
  for (const Tensor& tensor : tensors) bytes.push_back(tensor.to_host_bytes());
  return bytes;
}

class RandomProgramTest : public testing::TestWithParam<uint64_t> {
 protected:
  // Three sunk steps on the same arguments: each must give what one call gives.
  void expect_sink_gives(const std::vector<Bytes>& expected, JitLevel level) {
    uint64_t seed = GetParam();
    auto step = jit(
        [seed](Tensor a, Tensor b, Tensor c) {
          return random_program(seed, {a, b, c});
        },
        at(level));
    std::vector<Tensor> inputs = random_inputs(seed);
    std::vector<Tensor> stacked =
        sink(step)(3, repeat(inputs[0]), repeat(inputs[1]), repeat(inputs[2]));
    for (size_t i = 0; i < expected.size(); ++i) {
      Bytes thrice;
      for (int n = 0; n < 3; ++n)
        thrice.insert(thrice.end(), expected[i].begin(), expected[i].end());
      EXPECT_EQ(stacked[i].to_host_bytes(), thrice) << "output " << i;
    }
  }

  std::vector<Tensor> run_jit(JitLevel level) {
    uint64_t seed = GetParam();
    return jit([seed](std::vector<Tensor> inputs) { return random_program(seed, inputs); },
               at(level))(random_inputs(seed));
  }
};

TEST_P(RandomProgramTest, EagerJitAndSinkAgreeAtO0) {
  std::vector<Bytes> eager = bytes_of(random_program(GetParam(), random_inputs(GetParam())));
  EXPECT_EQ(bytes_of(run_jit(JitLevel::kO0)), eager);
  expect_sink_gives(eager, JitLevel::kO0);
}

TEST_P(RandomProgramTest, JitAndSinkAgreeAtO1AndStayCloseToO0) {
  std::vector<Tensor> fused = run_jit(JitLevel::kO1);
  expect_sink_gives(bytes_of(fused), JitLevel::kO1);
  std::vector<Tensor> plain = run_jit(JitLevel::kO0);
  for (size_t i = 0; i < plain.size(); ++i) {
    std::vector<float> a = fused[i].to_host<float>(), b = plain[i].to_host<float>();
    for (size_t k = 0; k < a.size(); ++k) EXPECT_NEAR(a[k], b[k], 1e-5 + 1e-5 * std::abs(b[k]));
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomProgramTest, testing::Range<uint64_t>(0, 12));

// ---- training

struct Trained {
  std::vector<float> losses;
  std::vector<Bytes> parameters;
  bool operator==(const Trained& o) const {
    return losses == o.losses && parameters == o.parameters;
  }
};

constexpr uint64_t kSteps = 6;

// Trains a small network for kSteps; `drive(step, images, labels)` returns the losses.
template <class Drive>
Trained train(const Drive& drive) {
  set_seed(3);
  nn::SequentialCell net(nn::Flatten(), nn::Dense(12, 17), nn::ReLU(), nn::Dense(17, 5));
  nn::CrossEntropyLoss loss_fn;
  nn::Momentum optimizer(net.trainable_params(), 0.1f, 0.9f, /*weight_decay=*/1e-3f);
  Tensor images = nn::uniform({kSteps, 8, 3, 4}, -1, 1);
  std::vector<int32_t> classes;
  for (size_t i = 0; i < kSteps * 8; ++i) classes.push_back(static_cast<int32_t>(i * 3 % 5));
  Tensor labels = Tensor::from_host(classes, {kSteps, 8});

  auto forward_fn = [&](Tensor data, Tensor label) { return loss_fn(net(data), label); };
  auto grad_fn = value_and_grad(forward_fn, std::nullopt, optimizer.parameters());
  auto step = [&](Tensor data, Tensor label) {
    auto [loss, grads] = grad_fn(data, label);
    return depend(loss, optimizer(grads));
  };
  Trained trained{drive(step, images, labels), {}};
  std::vector<Parameter> kept = net.parameters();
  kept.insert(kept.end(), optimizer.states().begin(), optimizer.states().end());
  for (const Parameter& parameter : kept) {
    trained.parameters.push_back(parameter.value().to_host_bytes());
  }
  return trained;
}

// Batch i of a stack, as a host tensor.
Tensor batch_of(const Tensor& stacked, uint64_t i) {
  TensorType type{stacked.dtype(), Shape(stacked.shape().begin() + 1, stacked.shape().end())};
  Bytes all = stacked.to_host_bytes();
  auto begin = all.begin() + static_cast<std::ptrdiff_t>(i * type.bytes());
  return Tensor::on_host_bytes(Bytes(begin, begin + static_cast<std::ptrdiff_t>(type.bytes())),
                               type);
}

template <class Step>
std::vector<float> run_steps(Step& step, const Tensor& images, const Tensor& labels) {
  std::vector<float> losses;
  for (uint64_t i = 0; i < kSteps; ++i) {
    losses.push_back(step(batch_of(images, i), batch_of(labels, i)).template item<float>());
  }
  return losses;
}

Trained train_eagerly() {
  return train([](auto& step, const Tensor& images, const Tensor& labels) {
    return run_steps(step, images, labels);
  });
}

Trained train_jitted(JitLevel level) {
  return train([level](auto& step, const Tensor& images, const Tensor& labels) {
    auto compiled = jit(step, at(level));
    return run_steps(compiled, images, labels);
  });
}

// Host queues for the first half, device queues for the second.
Trained train_sunk(JitLevel level) {
  return train([level](auto& step, const Tensor& images, const Tensor& labels) {
    auto loop = sink(jit(step, at(level)));
    Tensor host_images = Tensor::on_host_bytes(images.to_host_bytes(), images.type());
    Tensor host_labels = Tensor::on_host_bytes(labels.to_host_bytes(), labels.type());
    std::vector<float> losses =
        loop(kSteps / 2, each(host_images), each(host_labels)).template to_host<float>();
    for (uint64_t i = kSteps / 2; i < kSteps; ++i) {
      Tensor one =
          loop(1, repeat(batch_of(images, i).to_device()), repeat(batch_of(labels, i).to_device()));
      losses.push_back(one.to_host<float>()[0]);
    }
    return losses;
  });
}

TEST(TrainingTest, EagerJitAndSinkAgreeAtO0) {
  Trained eager = train_eagerly();
  EXPECT_LT(eager.losses.back(), eager.losses.front());
  EXPECT_TRUE(train_jitted(JitLevel::kO0) == eager);
  EXPECT_TRUE(train_sunk(JitLevel::kO0) == eager);
}

TEST(TrainingTest, JitAndSinkAgreeAtO1AndStayCloseToEager) {
  Trained jitted = train_jitted(JitLevel::kO1);
  EXPECT_TRUE(train_sunk(JitLevel::kO1) == jitted);
  Trained eager = train_eagerly();
  for (size_t i = 0; i < kSteps; ++i) {
    EXPECT_NEAR(jitted.losses[i], eager.losses[i], 1e-4 * eager.losses[i]);
  }
}

// ---- what a call costs and what it leaves alone

TEST(JitTest, ACachedCallIsOneHostCallAndAllocatesNothing) {
  Parameter w(Tensor::from_host<float>({1, 2, 3}, {3}), "w");
  auto step = jit([&](Tensor x) {
    w.assign(w * x);
    return ops::sum(w);
  });
  Tensor x = Tensor::on_host<float>({2, 2, 2}, {3});
  Tensor kept = step(x);
  kept = step(x);
  kept = step(x);
  kept.item<float>();
  Counters before = counters();
  kept = step(x);
  Counters after = counters();
  EXPECT_EQ(after.host_calls - before.host_calls, 1u);
  EXPECT_EQ(after.allocations - before.allocations, 0u);
  EXPECT_EQ(kept.item<float>(), 6 * 16);
  EXPECT_EQ(step.compile_count(), 1u);
}

TEST(SinkTest, ARunIsOneHostCall) {
  Parameter w(Tensor::from_host<float>({1}, {1}), "w");
  auto loop = sink(jit([&](Tensor x) {
    w.assign(w + x);
    return ops::sum(w);
  }));
  Tensor x = Tensor::from_host<float>({1}, {1});
  loop(100, repeat(x)).sync();
  Counters before = counters();
  Tensor sums = loop(100, repeat(x));
  Counters after = counters();
  EXPECT_EQ(after.host_calls - before.host_calls, 1u);
  EXPECT_EQ(loop.info().sink_allocations, 0u);
  EXPECT_EQ(sums.to_host<float>()[99], 201);
}

TEST(JitTest, UpdatesDoNotReachValuesReadBefore) {
  Parameter w(Tensor::from_host<float>({1, 2}, {2}), "w");
  auto step = jit([&](Tensor x) {
    w.assign(w + x);
    return ops::sum(w);
  });
  Tensor x = Tensor::from_host<float>({10, 10}, {2});
  step(x);
  Tensor snapshot = w.value();
  step(snapshot);
  EXPECT_EQ(snapshot.to_host<float>(), (std::vector<float>{11, 12}));
  EXPECT_EQ(w.value().to_host<float>(), (std::vector<float>{22, 24}));
  w.assign(Tensor::zeros({2}));  // an eager assignment is seen by the next call
  step(x);
  EXPECT_EQ(w.value().to_host<float>(), (std::vector<float>{10, 10}));
}

TEST(JitTest, CompilesPerSignatureAndInlinesWhenNested) {
  auto inner = jit([](Tensor x) { return ops::exp(x) * 2.0f; });
  auto outer =
      jit([&](Tensor x) { return inner(x) + grad([](Tensor y) { return ops::sum(y * y); })(x); });
  Tensor x = Tensor::from_host<float>({0, 1}, {2});
  EXPECT_NEAR(outer(x).to_host<float>()[1], 2 * std::exp(1.0) + 2, 1e-5);
  EXPECT_EQ(inner.compile_count(), 0u);
  outer(Tensor::zeros({3}));
  outer(x);
  EXPECT_EQ(outer.compile_count(), 2u);
}

TEST(JitTest, ReturnsTreesConstantsAndArguments) {
  Tensor captured = Tensor::from_host<float>({5, 6}, {2});
  auto f = jit([&](std::pair<Tensor, std::vector<Tensor>> tree) {
    return std::tuple(tree.first,
                      std::vector<Tensor>{tree.second[1] + captured, Tensor::scalar(3)});
  });
  Tensor a = Tensor::from_host<float>({1, 2}, {2});
  auto [first, rest] = f(std::pair(a, std::vector<Tensor>{a, a * 10.0f}));
  EXPECT_EQ(first.to_host<float>(), (std::vector<float>{1, 2}));
  EXPECT_EQ(rest[0].to_host<float>(), (std::vector<float>{15, 26}));
  EXPECT_EQ(rest[1].item<float>(), 3);
}

TEST(DataSinkTest, RunsEpochsAndMatchesTheLoop) {
  std::vector<float> values;
  for (int i = 0; i < 10; ++i) values.push_back(static_cast<float>(i));
  auto sum_of = [](Tensor x) { return ops::sum(x); };
  auto dataset = [&] {
    return data::ArrayDataset({Tensor::on_host(values, {10, 1})}).shuffle(5).batch(2);
  };
  std::vector<float> expected;
  data::Dataset plain = dataset();
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (const data::Batch& batch : plain) expected.push_back(sum_of(batch[0]).item<float>());
  }
  auto loop = data_sink<1>(jit(sum_of), dataset(), 3);
  std::vector<float> got;
  for (uint64_t steps : {3, 2, 3, 2}) {
    for (float sum : loop().to_host<float>()) got.push_back(sum);
    EXPECT_EQ(loop.last_steps(), steps);
  }
  EXPECT_EQ(got, expected);
}

}  // namespace
}  // namespace ballast::tests
