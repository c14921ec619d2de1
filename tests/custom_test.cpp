// custom_vjp and checkpoint: gradients, what they compose with, and that recomputing saves memory.
// Also derivatives of higher order.
#include "frontend/ballast_frontend.h"
#include "tests/reference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

namespace ballast::tests {
namespace {

using testing::ElementsAre;

Tensor vector(const std::vector<float>& values) {
  return Tensor::from_host(values, {static_cast<int64_t>(values.size())});
}
std::vector<float> floats(const Tensor& tensor) { return tensor.to_host<float>(); }

Tensor sample(const Shape& shape, double phase) {
  std::vector<float> values;
  for (int64_t i = 0; i < TensorType{DType::kF32, shape}.elements(); ++i) {
    values.push_back(static_cast<float>(std::sin(1.7 * static_cast<double>(i) + phase)));
  }
  return Tensor::from_host(values, shape);
}

// x, with a gradient that is cut to [-1, 1].
auto clipped() {
  return custom_vjp([](Tensor x) { return x; }, [](Tensor x) { return std::pair(x, x); },
                    [](Tensor, Tensor dy) { return ops::clip(dy, -1.0f, 1.0f); });
}

TEST(CustomVjpTest, ItsGradientIsTaken) {
  auto f = [](Tensor x) { return ops::sum(clipped()(x * x) * 3.0f); };
  const Tensor x = vector({1, -2});
  EXPECT_THAT(floats(clipped()(x)), ElementsAre(1, -2));
  EXPECT_THAT(floats(grad(f)(x)), ElementsAre(2, -4));
  EXPECT_THAT(floats(jit(grad(f))(x)), ElementsAre(2, -4));
  auto each_of = [](Tensor one) { return ops::sum(clipped()(one * one) * 3.0f); };
  EXPECT_THAT(floats(vmap(grad(each_of))(x)), ElementsAre(2, -4));
}

// Rounding whose derivative is taken to be 1, of two arguments and an integer.
TEST(CustomVjpTest, TreesClosuresAndJvp) {
  Parameter scale(vector({10, 100}), "scale");
  auto f = custom_vjp(
      [&](Tensor x, Tensor rows, Tensor w) { return ops::gather(ops::round(x), rows) * w; },
      [&](Tensor x, Tensor rows, Tensor w) {
        return std::pair(ops::gather(ops::round(x), rows) * w, std::tuple(rows, w));
      },
      [&](std::tuple<Tensor, Tensor> saved, Tensor dy) {
        auto [rows, w] = saved;
        const Tensor spread = ops::call("gather_grad", {rows, dy * w},
                                        {{"shape", Shape{2}}, {"axis", int64_t{0}}})[0];
        return std::tuple(spread * scale, Tensor(), Tensor());
      });
  const Tensor x = vector({0.4f, 2.6f}), rows = Tensor::from_host<int32_t>({1, 0}, {2});
  const Tensor w = vector({5, 7});
  auto loss = [&](Tensor at) { return ops::sum(f(at, rows, w)); };
  EXPECT_THAT(floats(f(x, rows, w)), ElementsAre(15, 0));
  EXPECT_THAT(floats(grad(loss)(x)), ElementsAre(70, 500));
  EXPECT_EQ(jvp(loss, x, vector({1, 2})).second.item<float>(), 70 + 1000);
}

TEST(CustomVjpTest, DifferentiatesTwice) {
  auto cube = custom_vjp([](Tensor x) { return x * x * x; },
                         [](Tensor x) { return std::pair(x * x * x, x); },
                         [](Tensor x, Tensor dy) { return dy * 3.0f * x * x; });
  EXPECT_EQ(grad(grad(cube))(Tensor::scalar(2)).item<float>(), 12);
  EXPECT_EQ(grad(grad(grad(cube)))(Tensor::scalar(2)).item<float>(), 6);
}

Tensor block(const Tensor& x, const Tensor& w) {
  Tensor y = x;
  for (int i = 0; i < 4; ++i) y = ops::tanh(ops::matmul(y, w)) * 1.5f;
  return y;
}

// A chain of blocks, each of them run again in the backward pass or not.
Tensor chain(const Tensor& x, const std::vector<Tensor>& weights, bool recomputes) {
  Tensor y = x;
  for (const Tensor& w : weights) y = recomputes ? checkpoint(block)(y, w) : block(y, w);
  return ops::sum(y * y);
}

std::vector<Tensor> weights() {
  std::vector<Tensor> all;
  for (int i = 0; i < 8; ++i) all.push_back(sample({16, 16}, 0.3 * i) * 0.4f);
  return all;
}

TEST(CheckpointTest, SavesPlannedMemory) {
  const Tensor x = sample({256, 16}, 0.1);
  auto gradients = [](bool recomputes) {
    return jit([=](Tensor at, std::vector<Tensor> ws) {
      auto loss = [&](Tensor input) { return chain(input, ws, recomputes); };
      return grad(loss)(at);
    });
  };
  auto kept = gradients(false), recomputed = gradients(true);
  const Tensor expected = kept(x, weights()), actual = recomputed(x, weights());
  EXPECT_EQ(floats(actual), floats(expected));
  // 32 activations are alive at once, or those of one block beside what lies between blocks.
  EXPECT_LT(recomputed.info().arena_bytes * 2, kept.info().arena_bytes);
  EXPECT_GT(recomputed.info().node_count, kept.info().node_count);
}

TEST(CheckpointTest, GradientsAreTheSameInEveryTransform) {
  const Tensor x = sample({4, 16}, 0.1);
  const std::vector<Tensor> ws = {weights()[0], weights()[1]};
  auto plain = [](Tensor at, std::vector<Tensor> w) { return chain(at, w, false); };
  auto again = [](Tensor at, std::vector<Tensor> w) { return chain(at, w, true); };
  EXPECT_EQ(floats(again(x, ws)), floats(plain(x, ws)));
  EXPECT_EQ(floats(grad(again)(x, ws)), floats(grad(plain)(x, ws)));
  auto [y, pullback] = vjp(again, x, ws);
  auto [dx, dws] = pullback(Tensor::ones({}));
  EXPECT_EQ(floats(dx), floats(grad(plain)(x, ws)));
  EXPECT_EQ(dws.size(), 2u);
  auto close = [](const Tensor& a, const Tensor& b) {
    EXPECT_EQ(difference(to_array(a), to_array(b), 1e-5, 1e-5), "");
  };
  const auto tangents = std::tuple(sample({4, 16}, 2), std::vector<Tensor>(2));
  close(jvp(again, std::tuple(x, ws), tangents).second,
        jvp(plain, std::tuple(x, ws), tangents).second);
  close(hvp([&](Tensor at) { return again(at, ws); }, x, sample({4, 16}, 2)),
        hvp([&](Tensor at) { return plain(at, ws); }, x, sample({4, 16}, 2)));
  auto row_loss = [&](bool recomputes) {
    return [&, recomputes](Tensor row) {
      return chain(ops::reshape(row, {1, 16}), ws, recomputes);
    };
  };
  close(vmap(grad(row_loss(true)))(x), vmap(grad(row_loss(false)))(x));
}

// What fn reads and assigns: weights get gradients, statistics move once, dropout draws one mask.
TEST(CheckpointTest, ParametersAndGenerators) {
  Parameter w(vector({2, 3}), "w"), count(Tensor::scalar(0), "count", false);
  Generator generator(5);
  auto layer = [&](Tensor x) {
    count.assign(count.value() + 1.0f);
    return ops::dropout(x * w, 0.5, generator) * w;
  };
  auto loss = [&](bool recomputes) {
    return [&, recomputes](Tensor x) {
      return ops::sum(recomputes ? checkpoint(layer)(x) : layer(x));
    };
  };
  const Tensor x = vector({1, 10});
  generator.set_seed(5);
  auto [kept_value, kept] = value_and_grad(loss(false), 0, std::vector{w})(x);
  generator.set_seed(5);
  auto [value, gradients] = value_and_grad(loss(true), 0, std::vector{w})(x);
  EXPECT_EQ(floats(value), floats(kept_value));
  EXPECT_EQ(floats(gradients.first), floats(kept.first));
  EXPECT_EQ(floats(gradients.second[0]), floats(kept.second[0]));
  EXPECT_EQ(count.value().item<float>(), 2);
  EXPECT_EQ(generator.state().to_host<int64_t>(), (std::vector<int64_t>{5, 1}));
}

// ---- derivatives of higher order

struct Family {
  const char* name;
  std::function<Tensor(const Tensor&)> fn;
};

class ThirdOrderTest : public testing::TestWithParam<Family> {};

// Along a line, by three nested reverse passes, against differences of the second derivative, and
// the mixed forms against each other.
TEST_P(ThirdOrderTest, ReverseForwardAndMixed) {
  const Tensor at = sample({3, 4}, 0.3), along = sample({3, 4}, 1.1) * 0.5f;
  auto line = [&](Tensor t) { return ops::sum(GetParam().fn(at + t * along) * at); };
  auto second = grad(grad(line));
  auto third = grad(second);
  const double step = 0.02;
  const auto difference_at = [&](double h) {
    return (second(Tensor::scalar(h)).item<float>() - second(Tensor::scalar(-h)).item<float>()) /
           (2 * h);
  };
  // Richardson's extrapolation removes the error of order h^2.
  const double expected = (4 * difference_at(step) - difference_at(2 * step)) / 3;
  const double tolerance = 2e-3 * std::max(1.0, std::abs(expected));
  const Tensor zero = Tensor::scalar(0), one = Tensor::scalar(1);
  EXPECT_NEAR(third(zero).item<float>(), expected, tolerance);
  EXPECT_NEAR(jit(third)(zero).item<float>(), expected, tolerance);
  auto slope = [&](auto f) { return [=](Tensor t) { return jvp(f, t, one).second; }; };
  EXPECT_NEAR(slope(second)(zero).item<float>(), expected, tolerance);
  EXPECT_NEAR(grad(slope(grad(line)))(zero).item<float>(), expected, tolerance);
  EXPECT_NEAR(grad(grad(slope(line)))(zero).item<float>(), expected, tolerance);
  EXPECT_NEAR(slope(slope(slope(line)))(zero).item<float>(), expected, tolerance);
  const Tensor all = vmap(third)(vector({0, 0.01f}));
  EXPECT_NEAR(floats(all)[0], expected, tolerance);
}

Tensor small(const Shape& shape) { return sample(shape, 0.7); }

INSTANTIATE_TEST_SUITE_P(
    All, ThirdOrderTest,
    testing::Values(
        Family{"tanh", [](const Tensor& x) { return ops::tanh(x); }},
        Family{"exp_log", [](const Tensor& x) { return ops::log(ops::exp(x) + 1.0f); }},
        Family{"trigonometric", [](const Tensor& x) { return ops::sin(x) * ops::cos(x * 0.5f); }},
        Family{"division", [](const Tensor& x) { return x / (2.0f + x * x); }},
        Family{"roots", [](const Tensor& x) { return ops::sqrt(x * x + 1.0f); }},
        Family{"gelu", [](const Tensor& x) { return ops::gelu(x, ops::Gelu::kExact); }},
        Family{"silu", [](const Tensor& x) { return ops::silu(x); }},
        Family{"softplus", [](const Tensor& x) { return ops::softplus(x); }},
        Family{"matmul",
               [](const Tensor& x) {
                 return ops::matmul(ops::matmul(x, small({4, 3})), x);
               }},
        Family{"softmax", [](const Tensor& x) { return ops::softmax(x); }},
        Family{"log_softmax", [](const Tensor& x) { return ops::log_softmax(x) * x; }},
        Family{"layer_norm",
               [](const Tensor& x) { return ops::layer_norm(x, small({4}), small({4})).y; }},
        Family{"attention",
               [](const Tensor& x) { return ops::scaled_dot_product_attention(x, x, x); }}),
    [](const testing::TestParamInfo<Family>& family) { return std::string(family.param.name); });

}  // namespace
}  // namespace ballast::tests
