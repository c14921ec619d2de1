// The layers of nn: what they compute, against numbers from plain loops in double; and for each of
// them value and gradients against the reference, and one result in every mode.
#include "frontend/ballast_frontend.h"
#include "tests/reference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

namespace ballast::tests {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::FloatNear;

Tensor waves(const Shape& shape, double phase) {
  std::vector<float> values;
  const int64_t count = TensorType{DType::kF32, shape}.elements();
  for (int64_t i = 0; i < count; ++i) {
    values.push_back(static_cast<float>(std::sin(1.7 * static_cast<double>(i) + phase)));
  }
  return Tensor::from_host(values, shape);
}

// A scalar that depends on every element differently.
Tensor weighted_sum(const Tensor& y) {
  return ops::sum(y * ops::cast(waves(y.shape(), 0.4), y.dtype()));
}

struct Layer {
  const char* name;
  std::function<std::shared_ptr<nn::Cell>()> make;
  Shape input;
};

template <class Cell, class... Arguments>
std::function<std::shared_ptr<nn::Cell>()> layer(Arguments... arguments) {
  return [=] { return std::make_shared<Cell>(arguments...); };
}

std::ostream& operator<<(std::ostream& out, const Layer& row) { return out << row.name; }

using nn::Extents;
const std::vector<Layer> kLayers = {
    {"Dense", layer<nn::Dense>(3, 4), {2, 3}},
    {"DenseWithoutBias", layer<nn::Dense>(3, 4, false), {2, 2, 3}},
    {"Conv2d", layer<nn::Conv2d>(2, 3, Extents(3)), {2, 2, 4, 5}},
    {"Conv2dPadded",
     layer<nn::Conv2d>(4, 2, Extents{2, 3}, Extents{2, 1}, "pad", Extents{1, 0, 2, 1}, Extents(1),
                       2, true),
     {1, 4, 4, 5}},
    {"Conv1d", layer<nn::Conv1d>(2, 3, 3, 2), {2, 2, 5}},
    {"BatchNorm2d", layer<nn::BatchNorm2d>(3), {2, 3, 2, 2}},
    {"BatchNorm1d", layer<nn::BatchNorm1d>(3), {4, 3}},
    {"InstanceNorm2d", layer<nn::InstanceNorm2d>(2), {2, 2, 2, 3}},
    {"Conv2dTranspose", layer<nn::Conv2dTranspose>(2, 2, Extents(3), Extents(2)), {1, 2, 2, 3}},
    {"LayerNorm", layer<nn::LayerNorm>(Shape{4}), {3, 4}},
    {"LayerNormOverTwo", layer<nn::LayerNorm>(Shape{2, 3}, -2), {3, 2, 3}},
    {"RMSNorm", layer<nn::RMSNorm>(Shape{4}), {3, 4}},
    {"GroupNorm", layer<nn::GroupNorm>(2, 4), {2, 4, 3}},
    {"MultiHeadAttention", layer<nn::MultiHeadAttention>(4, 2), {2, 3, 4}},
    {"CausalAttention", layer<nn::MultiHeadAttention>(4, 2, 0.0, false, true), {1, 3, 4}},
    {"ReLU", layer<nn::ReLU>(), {7}},
    {"GELU", layer<nn::GELU>(), {7}},
    {"SiLU", layer<nn::SiLU>(), {7}},
    {"Tanh", layer<nn::Tanh>(), {7}},
    {"Sigmoid", layer<nn::Sigmoid>(), {7}},
    {"LeakyReLU", layer<nn::LeakyReLU>(), {7}},
    {"Softmax", layer<nn::Softmax>(), {2, 4}},
    {"LogSoftmax", layer<nn::LogSoftmax>(0), {2, 4}},
    {"MaxPool2d", layer<nn::MaxPool2d>(Extents(2), Extents(2)), {1, 2, 4, 4}},
    {"AvgPool2d", layer<nn::AvgPool2d>(Extents(2), Extents(2), "same"), {1, 2, 3, 4}},
    {"MaxPool1d", layer<nn::MaxPool1d>(2, 2), {2, 2, 5}},
    {"AvgPool2dCeil",
     layer<nn::AvgPool2d>(Extents(2), Extents(2), "pad", Extents(1), true, true),
     {1, 2, 3, 4}},
    {"AdaptiveMaxPool2d", layer<nn::AdaptiveMaxPool2d>(Extents{2, 3}), {1, 2, 3, 4}},
    {"Flatten", layer<nn::Flatten>(), {2, 3, 2}},
};

class LayerTest : public testing::TestWithParam<Layer> {
 protected:
  void SetUp() override { set_seed(7); }
  static std::shared_ptr<nn::Cell> made() {
    auto cell = GetParam().make();
    cell->set_train();
    return cell;
  }
};

// By moving one element of a parameter at a time.
HostArray finite_difference(const Program& program, const std::vector<HostArray>& inputs,
                            const Parameter& parameter) {
  const HostArray original = to_array(parameter.value());
  HostArray gradient = original;
  auto loss_at = [&](size_t i, float value) {
    HostArray moved = original;
    moved.values[i] = value;
    parameter.assign(to_tensor(moved));
    return reference_eval(program, inputs)[0].values[0];
  };
  for (size_t i = 0; i < original.values.size(); ++i) {
    const auto value = static_cast<float>(original.values[i]);
    const float above = value + 0x1p-9f, below = value - 0x1p-9f;
    gradient.values[i] = (loss_at(i, above) - loss_at(i, below)) / (above - below);
  }
  parameter.assign(to_tensor(original));
  return gradient;
}

TEST_P(LayerTest, ValueAndGradientsAreTheReferences) {
  auto cell = made();
  // The input is a parameter as well, so that all gradients are taken alike.
  const Parameter x(waves(GetParam().input, 0.9), "x");
  auto loss = [&](const std::vector<Tensor>&) {
    return std::vector<Tensor>{weighted_sum((*cell)(x))};
  };
  std::vector<Parameter> weights = cell->trainable_params();
  weights.push_back(x);
  const Program program = trace(loss, {});
  Program gradients = reverse(program, {}, weights);
  gradients.effects.clear();  // moving averages stay where the reference has them
  const std::vector<Tensor> results = eval(gradients, {});
  EXPECT_EQ(difference(to_array(results[0]), reference_eval(program, {})[0], 1e-4, 1e-5), "");
  for (size_t i = 0; i < weights.size(); ++i) {
    const HostArray expected = finite_difference(program, {}, weights[i]);
    double scale = 0;
    for (double value : expected.values) scale = std::max(scale, std::abs(value));
    EXPECT_EQ(difference(to_array(results[i + 1]), expected, 2e-3, 1e-4 + 1e-3 * scale), "")
        << weights[i].name();
  }
}

TEST_P(LayerTest, EagerJitAndSinkAgree) {
  auto cell = made();
  const Tensor x = waves(GetParam().input, 0.9);
  const std::vector<uint8_t> eager = (*cell)(x).to_host_bytes();
  JitOptions options;
  options.level = JitLevel::kO0;
  auto compiled = jit([cell](const Tensor& t) { return (*cell)(t); }, options);
  EXPECT_EQ(compiled(x).to_host_bytes(), eager);
  EXPECT_EQ(sink(compiled)(1, repeat(x)).to_host_bytes(), eager);
  set_context({Mode::kGraph, JitLevel::kO0, {}, {}});
  EXPECT_EQ((*cell)(x).to_host_bytes(), eager);
  set_context({Mode::kPyNative, JitLevel::kO1, {}, {}});
}

INSTANTIATE_TEST_SUITE_P(Layers, LayerTest, testing::ValuesIn(kLayers),
                         [](const auto& row) { return std::string(row.param.name); });

// ---- what single layers compute

TEST(DenseTest, IsXTimesWTransposedPlusB) {
  nn::Dense dense(2, 3, true, nn::One(), nn::Constant(0.5));
  EXPECT_THAT(dense(Tensor::from_host<float>({1, 2}, {1, 2})).to_host<float>(), Each(3.5f));
  EXPECT_EQ(dense.weight().shape(), (Shape{3, 2}));
}

TEST(Conv2dTest, PadsToTheSameExtentByDefault) {
  nn::Conv2d conv(1, 1, 3, 1, "same", 0, 1, 1, false, nn::One());
  EXPECT_THAT(conv(Tensor::ones({1, 1, 3, 3})).to_host<float>(),
              ElementsAre(4, 6, 4, 6, 9, 6, 4, 6, 4));
  EXPECT_FALSE(conv.bias().defined());
  EXPECT_EQ(nn::Conv2d(4, 6, {1, 3}, 1, "same", 0, 1, 2).weight().shape(), (Shape{6, 2, 1, 3}));
}

TEST(BatchNormTest, MovesItsStatisticsInTrainingAndUsesThemElsewhere) {
  nn::BatchNorm2d norm(2);
  EXPECT_EQ(norm.trainable_params().size(), 2u);
  EXPECT_EQ(norm.untrainable_params().size(), 2u);
  // Channel 0 is 1, 2, 3, 4: mean 2.5, biased variance 1.25, unbiased 5/3; channel 1 is 2.
  const Tensor x = Tensor::from_host<float>({1, 2, 2, 2, 3, 4, 2, 2}, {2, 2, 1, 2});
  norm.set_train();
  const std::vector<float> y = norm(x).to_host<float>();
  EXPECT_NEAR(y[0], -1.5 / std::sqrt(1.25 + 1e-5), 1e-5);
  EXPECT_NEAR(y[2], 0, 1e-5);
  EXPECT_THAT(norm.moving_mean().value().to_host<float>(),
              ElementsAre(FloatNear(0.25f, 1e-6f), FloatNear(0.2f, 1e-6f)));
  EXPECT_THAT(norm.moving_variance().value().to_host<float>(),
              ElementsAre(FloatNear(0.9f + 0.5f / 3, 1e-6f), FloatNear(0.9f, 1e-6f)));
  const std::vector<float> before = norm.moving_mean().value().to_host<float>();
  norm.set_train(false);
  EXPECT_NEAR(norm(x).to_host<float>()[0], 0.75 / std::sqrt(0.9 + 0.5 / 3 + 1e-5), 1e-5);
  EXPECT_EQ(norm.moving_mean().value().to_host<float>(), before);
}

TEST(BatchNormTest, WithoutRunningValues) {
  const Tensor x = waves({3, 2, 4}, 0.3), gamma = waves({2}, 0.5), beta = waves({2}, 0.7);
  const auto with = [&](const Tensor& in) {
    return ops::batch_norm(in, gamma, beta, Tensor::zeros({2}), Tensor::ones({2}), 1e-3).y;
  };
  const auto without = [&](const Tensor& in) { return ops::batch_norm(in, gamma, beta, 1e-3).y; };
  EXPECT_EQ(without(x).to_host<float>(), with(x).to_host<float>());
  const auto loss = [&](const auto& norm) {
    return [&](Tensor in) { return ops::sum(norm(in) * in * in); };
  };
  EXPECT_EQ(grad(loss(without))(x).to_host<float>(), grad(loss(with))(x).to_host<float>());
  const Tensor narrow = ops::cast(x, DType::kBF16);
  EXPECT_EQ(ops::batch_norm(narrow, ops::cast(gamma, DType::kBF16), ops::cast(beta, DType::kBF16))
                .y.dtype(),
            DType::kBF16);
}

// All of them go by axis 1, whatever is behind it.
TEST(BatchNormTest, OfRowsLinesAndVolumes) {
  const Tensor x = waves({2, 3, 4}, 0.2), y = nn::BatchNorm1d(3)(x);
  nn::BatchNorm1d lines(3);
  nn::BatchNorm3d volumes(3);
  lines.set_train();
  volumes.set_train();
  EXPECT_EQ(lines(x).to_host<float>(), volumes(ops::reshape(x, {2, 3, 1, 4, 1})).to_host<float>());
  EXPECT_NE(lines(x).to_host<float>(), y.to_host<float>());
  EXPECT_THROW(lines(Tensor::zeros({2, 3, 1, 1})), Error);
  EXPECT_THROW(volumes(x), Error);
}

TEST(BatchNormTest, MovesItsStatisticsOncePerSunkStep) {
  nn::BatchNorm2d norm(1);
  norm.set_train();
  auto step = jit([norm](const Tensor& x) mutable { return ops::sum(norm(x)); });
  sink(step)(3, repeat(Tensor::ones({1, 1, 1, 2})));
  EXPECT_NEAR(norm.moving_mean().value().item<float>(), 1 - 0.9 * 0.9 * 0.9, 1e-6);
}

// Mean and variance of `count` neighbours from `first` on, in double.
std::pair<double, double> moments(const std::vector<float>& x, size_t first, size_t count) {
  double sum = 0, squares = 0;
  for (size_t i = first; i < first + count; ++i) sum += x[i];
  for (size_t i = first; i < first + count; ++i) squares += std::pow(x[i] - sum / count, 2);
  return {sum / count, squares / count};
}

TEST(NormTest, LayerGroupAndRms) {
  const Tensor x = waves({3, 4}, 0.2);
  const std::vector<float> values = x.to_host<float>();
  const std::vector<float> layer_y = nn::LayerNorm({4})(x).to_host<float>();
  const std::vector<float> group_y = nn::GroupNorm(2, 4)(x).to_host<float>();
  const std::vector<float> single_y =
      nn::InstanceNorm1d(3)(ops::reshape(x, {1, 3, 4})).to_host<float>();
  const std::vector<float> rms_y = nn::RMSNorm({4})(x).to_host<float>();
  for (size_t i = 0; i < 12; ++i) {
    auto [mean, variance] = moments(values, i / 4 * 4, 4);
    EXPECT_NEAR(layer_y[i], (values[i] - mean) / std::sqrt(variance + 1e-7), 1e-5);
    EXPECT_NEAR(single_y[i], (values[i] - mean) / std::sqrt(variance + 1e-5), 1e-5);
    EXPECT_NEAR(rms_y[i], values[i] / std::sqrt(variance + mean * mean + 1e-6), 1e-5);
    auto [group_mean, group_variance] = moments(values, i / 2 * 2, 2);
    EXPECT_NEAR(group_y[i], (values[i] - group_mean) / std::sqrt(group_variance + 1e-5), 1e-4);
  }
}

TEST(NormTest, WithoutAffineTheyTrainNothing) {
  EXPECT_TRUE(
      nn::LayerNorm({4}, -1, 1e-7, nn::One(), nn::Zero(), false).trainable_params().empty());
  EXPECT_TRUE(nn::InstanceNorm2d(4, 1e-5, false).trainable_params().empty());
  EXPECT_TRUE(nn::BatchNorm1d(4, 1e-5, 0.9, false).trainable_params().empty());
}

TEST(EmbeddingTest, TakesRowsAndTrainsAllButThePadding) {
  set_seed(1);
  nn::Embedding table(5, 2, nn::Normal(), 3);
  const std::vector<float> rows = table.embedding_table().value().to_host<float>();
  const Tensor ids = Tensor::from_host<int32_t>({4, 3, 4}, {3});
  EXPECT_THAT(table(ids).to_host<float>(), ElementsAre(rows[8], rows[9], 0, 0, rows[8], rows[9]));
  auto loss = [table](const Tensor& i) mutable { return ops::sum(table(i)); };
  const auto gradients = grad(loss, std::nullopt, table.trainable_params())(ids);
  EXPECT_THAT(gradients[0].to_host<float>(), ElementsAre(0, 0, 0, 0, 0, 0, 0, 0, 2, 2));
}

// softmax(q k' / sqrt(d)) v by head, with projections, in double; hidden[n][s] leaves s out.
std::vector<double> attention(const std::vector<float>& x, const nn::Cell& cell, int n, int e,
                              int heads, const std::function<bool(int, int)>& is_hidden) {
  auto parameters = cell.parameters_dict();
  const auto w = parameters.at("in_proj_weight").value().to_host<float>();
  const auto b = parameters.at("in_proj_bias").value().to_host<float>();
  const auto out_w = parameters.at("out_proj.weight").value().to_host<float>();
  auto projected = [&](int row, int column) {
    double sum = b[column];
    for (int i = 0; i < e; ++i) sum += static_cast<double>(x[row * e + i]) * w[column * e + i];
    return sum;
  };
  const int d = e / heads;
  std::vector<double> joined(n * e), y(n * e);
  for (int head = 0; head < heads; ++head) {
    for (int q = 0; q < n; ++q) {
      std::vector<double> p(n);
      double total = 0;
      for (int s = 0; s < n; ++s) {
        double score = 0;
        for (int i = head * d; i < (head + 1) * d; ++i) {
          score += projected(q, i) * projected(s, e + i) / std::sqrt(d);
        }
        total += p[s] = is_hidden(q, s) ? 0 : std::exp(score);
      }
      for (int i = head * d; i < (head + 1) * d; ++i) {
        for (int s = 0; s < n; ++s) joined[q * e + i] += p[s] / total * projected(s, 2 * e + i);
      }
    }
  }
  for (int row = 0; row < n; ++row) {
    for (int o = 0; o < e; ++o) {
      for (int i = 0; i < e; ++i) y[row * e + o] += joined[row * e + i] * out_w[o * e + i];
    }
  }
  return y;
}

TEST(MultiHeadAttentionTest, IsTheFormulaWithAndWithoutAMask) {
  set_seed(5);
  constexpr int kLength = 4, kSize = 6, kHeads = 2;
  nn::MultiHeadAttention cell(kSize, kHeads);
  const Tensor x = waves({1, kLength, kSize}, 0.3);
  auto expect = [&](const Tensor& y, const std::function<bool(int, int)>& is_hidden) {
    const auto expected = attention(x.to_host<float>(), cell, kLength, kSize, kHeads, is_hidden);
    const auto got = y.to_host<float>();
    for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-5) << i;
  };
  auto none = [](int, int) { return false; };
  auto odd = [](int q, int s) { return (q + s) % 3 == 1; };
  expect(cell(x), none);
  expect(cell(x, x, x), none);
  std::vector<bool> hidden;
  std::vector<float> added;
  for (int q = 0; q < kLength; ++q) {
    for (int s = 0; s < kLength; ++s) {
      hidden.push_back(odd(q, s));
      added.push_back(odd(q, s) ? -INFINITY : 0);
    }
  }
  expect(cell(x, Tensor::from_host(hidden, {kLength, kLength})), odd);
  expect(cell(x, x, x, Tensor::from_host(added, {kLength, kLength})), odd);
}

TEST(MultiHeadAttentionTest, DropsProbabilitiesInTrainingOnly) {
  set_seed(5);
  nn::MultiHeadAttention cell(4, 1, /*dropout=*/0.5);
  const Tensor x = waves({1, 6, 4}, 0.3);
  const std::vector<float> plain = cell(x).to_host<float>();
  EXPECT_EQ(cell(x).to_host<float>(), plain);
  cell.set_train();
  EXPECT_NE(cell(x).to_host<float>(), plain);
}

// ---- cells

struct Block : nn::Cell {
  nn::Dense fc{2, 2};
  nn::BatchNorm2d norm{2};
  Block() {
    add("fc", fc);
    add("norm", norm);
  }
  using Cell::construct;
  Tensor construct(const Tensor& x) override { return fc(x); }
};

TEST(CellTest, NamesAndCountsItsParameters) {
  Block first, second;
  nn::CellList list(first, second);
  EXPECT_EQ(list.size(), 2u);
  EXPECT_EQ(list.parameter_count(), 2 * (4 + 2 + 8));
  EXPECT_EQ(list.parameters_dict().count("1.norm.moving_mean"), 1u);
  EXPECT_EQ(first.parameters()[0].name(), "0.fc.weight");
  EXPECT_EQ(list.trainable_params().size(), 8u);
  EXPECT_EQ(first.summary(),
            "parameter               type         elements  trained\n"
            "0.fc.weight             f32[2, 2]           4  yes\n"
            "0.fc.bias               f32[2]              2  yes\n"
            "0.norm.gamma            f32[2]              2  yes\n"
            "0.norm.beta             f32[2]              2  yes\n"
            "0.norm.moving_mean      f32[2]              2  no\n"
            "0.norm.moving_variance  f32[2]              2  no\n"
            "14 elements in 6 parameters, 10 of them trained\n");
  list.set_train();
  EXPECT_TRUE(first.norm.is_training());
}

TEST(CellTest, ASharedCellCountsOnceUnderItsFirstName) {
  Block shared;
  nn::SequentialCell row(shared, shared);
  EXPECT_EQ(row.parameters().size(), 6u);
  EXPECT_EQ(row.parameters()[0].name(), "0.fc.weight");
}

}  // namespace
}  // namespace ballast::tests
