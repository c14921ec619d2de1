// while_loop and fori_loop: values, carried parameters and gradients.
#include "tests/control_flow/support.h"

namespace ballast::tests {
namespace {

TEST(While, RunsUntilTheConditionFails) {
  Tensor x = vector_of({1, 2});
  EXPECT_THAT(floats(doubled(x, Tensor::scalar(40))), ElementsAre(16, 32));
  EXPECT_THAT(floats(doubled(x, Tensor::scalar(3))), ElementsAre(1, 2));
  EXPECT_THAT(floats(doubled(x, Tensor::scalar(4))), ElementsAre(2, 4));
  auto fn = jit(doubled);
  EXPECT_THAT(floats(fn(x, Tensor::scalar(40))), ElementsAre(16, 32));
  EXPECT_THAT(floats(fn(x, Tensor::scalar(3))), ElementsAre(1, 2));
  expect_same_jitted(doubled, x, Tensor::scalar(100));
}

TEST(While, ParametersAreCarriedAndRead) {
  Parameter total(Tensor::scalar(0), "total"), limit(Tensor::scalar(10), "limit");
  auto fn = [&](Tensor x) {
    return while_loop([&](Tensor) { return ops::less(total, limit); },
                      [&](Tensor a) {
                        total.assign(total + a);
                        return a + 1.0f;
                      },
                      x);
  };
  EXPECT_EQ(fn(Tensor::scalar(1)).item<float>(), 5);
  EXPECT_EQ(total.value().item<float>(), 10);
  total.assign(Tensor::scalar(0));
  EXPECT_EQ(jit(fn)(Tensor::scalar(2)).item<float>(), 6);
  EXPECT_EQ(total.value().item<float>(), 14);
}

// `n` steps, where n is known to the device only.
auto repeated(const Tensor& x, const Tensor& w, const Tensor& n) {
  return fori_loop(
      0, n, [&](Tensor i, Tensor a) { return mixed(a, ops::cast(i, DType::kF32) * 0.1f, w); }, x);
}

Tensor repeated_unrolled(Tensor x, const Tensor& w, int n) {
  for (int i = 0; i < n; ++i) {
    x = mixed(x, Tensor::scalar(static_cast<float>(i)) * 0.1f, w);
  }
  return x;
}

TEST(ForiLoop, NumbersAndTensorsAsBounds) {
  Tensor x = vector_of({.5f, -.5f}), w = vector_of({.9f, 1.1f});
  Tensor n = Tensor::scalar(4, DType::kI32);
  EXPECT_EQ(floats(repeated(x, w, n)), floats(repeated_unrolled(x, w, 4)));
  auto fixed = [](Tensor a) {
    return fori_loop(
        2, 5, [](Tensor i, Tensor c) { return c + ops::cast(i, DType::kF32); }, a);
  };
  EXPECT_THAT(floats(fixed(vector_of({0, 1}))), ElementsAre(9, 10));
  expect_same_jitted(fixed, vector_of({0, 1}));
  expect_same_jitted(repeated, x, w, n);
  auto none = [](Tensor a) {
    return fori_loop(
        3, 1, [](Tensor, Tensor c) { return c * 0.0f; }, a);
  };
  EXPECT_THAT(floats(none(vector_of({7}))), ElementsAre(7));
}

TEST(While, TheCarryKeepsItsNesting) {
  const Tensor x = Tensor::scalar(0);
  using Carry = std::vector<std::vector<Tensor>>;
  EXPECT_THAT(message_of([&] {
                while_loop([](const Carry& c) { return ops::less(c[0][0], 1); },
                           [](const Carry& c) { return regrouped(c[0][0], true); },
                           regrouped(x, false));
              }),
              HasSubstr("[while_loop] the carry is nested differently after the body: vectors of "
                        "[2, 2, 1] before it and [2, 1, 2] after it (at while_test.cpp:"));
  EXPECT_THAT(message_of([&] {
                scan([](const Carry& c,
                        Tensor) { return std::pair(regrouped(c[0][0], true), std::tuple<>()); },
                     regrouped(x, false), vector_of({1, 2}));
              }),
              HasSubstr("[scan] the carry is nested differently after the body"));
}

TEST(While, GradientsOfAnyNumberOfSteps) {
  Tensor x = vector_of({.5f, -.5f}), w = vector_of({.9f, 1.1f});
  auto loss = [](Tensor a, Tensor weight, Tensor n) {
    Tensor y = repeated(a, weight, n);
    return ops::sum(y * y);
  };
  auto jitted = jit(value_and_grad(loss, std::vector<int>{0, 1}));
  for (int n : {0, 1, 3, 64, 65, 150}) {  // 64 carries are kept
    auto written_out = value_and_grad(
        [n](Tensor a, Tensor weight) {
          Tensor y = repeated_unrolled(a, weight, n);
          return ops::sum(y * y);
        },
        std::vector<int>{0, 1});
    std::vector<Tensor> expected = leaves_of(written_out(x, w));
    std::vector<Tensor> got = leaves_of(jitted(x, w, Tensor::scalar(n, DType::kI32)));
    for (size_t i = 0; i < got.size(); ++i) expect_near(got[i], expected[i], 1e-5f);
  }
  EXPECT_EQ(jitted.compile_count(), 1u);
  expect_same_jitted(value_and_grad(loss, std::vector<int>{0, 1}), x, w,
                     Tensor::scalar(3, DType::kI32));
}

TEST(While, Pullbacks) {
  Tensor x = vector_of({.5f, -.5f}), w = vector_of({.9f, 1.1f});
  const Tensor n = Tensor::on_host(std::vector<int32_t>{5}, {});
  auto loss = [n](Tensor a, Tensor weight) {
    return ops::sum(ops::square(repeated(a, weight, n)));
  };
  const std::vector<Tensor> expected = grad(loss, std::vector<int>{0, 1})(x, w);
  const auto [dx, dw] = vjp(loss, x, w).second(Tensor::scalar(1));
  expect_near(dx, expected[0], 1e-6f);
  expect_near(dw, expected[1], 1e-6f);
  expect_near(jacrev(loss, 1)(x, w), expected[1], 1e-6f);
}

TEST(While, SecondDerivatives) {
  Tensor x = vector_of({.5f, -.5f}), w = vector_of({.9f, 1.1f});
  auto twice = [](auto run) {
    auto loss = [run](Tensor a, Tensor weight) { return ops::sum(ops::square(run(a, weight))); };
    return grad(
        [loss](Tensor a, Tensor weight) {
          std::vector<Tensor> first = grad(loss, std::vector<int>{0, 1})(a, weight);
          return ops::sum(first[0] * first[0]) + ops::sum(ops::sin(first[1]));
        },
        std::vector<int>{0, 1});
  };
  Tensor n = Tensor::on_host(std::vector<int32_t>{5}, {});
  auto looped = twice([n](Tensor a, Tensor weight) { return repeated(a, weight, n); });
  auto written_out = twice([](Tensor a, Tensor weight) { return repeated_unrolled(a, weight, 5); });
  std::vector<Tensor> expected = written_out(x, w), got = jit(looped)(x, w);
  for (size_t i = 0; i < got.size(); ++i) expect_near(got[i], expected[i], 1e-4f);
}

}  // namespace
}  // namespace ballast::tests
