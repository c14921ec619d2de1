// scan: values, carried parameters and gradients.
#include "tests/control_flow/support.h"

namespace ballast::tests {
namespace {

TEST(Scan, SameAsTheLoopWrittenOut) {
  Tensor h = vector_of({.5f, -.5f}), w = vector_of({.9f, 1.1f});
  for (bool reverse : {false, true}) {
    auto [carry, ys] = folded(h, sequence(), w, reverse);
    auto [expected_carry, expected_ys] = unrolled(h, sequence(), w, reverse);
    EXPECT_EQ(floats(carry), floats(expected_carry));
    EXPECT_EQ(floats(ys), floats(expected_ys));
    expect_same_jitted([&](Tensor a, Tensor b, Tensor c) { return folded(a, b, c, reverse); }, h,
                       sequence(), w);
  }
}

TEST(Scan, LargeRowsAndSmallOnesGiveTheSame) {
  // Rows of 4096 bytes are read and written where they lie; they are too many to be stitched.
  Tensor xs = ops::reshape(ops::arange(0, 20 * 1024, 1) / 20480.0f, {20, 1024});
  Tensor h = Tensor::zeros({1024}), w = Tensor::full({1024}, 0.5);
  expect_same_jitted([](Tensor a, Tensor b, Tensor c) { return folded(a, b, c, true); }, h, xs, w);
  auto [carry, ys] = jit([](Tensor a, Tensor b, Tensor c) { return folded(a, b, c); })(h, xs, w);
  auto [expected_carry, expected_ys] = unrolled(h, xs, w);
  expect_near(carry, expected_carry);
  expect_near(ys, expected_ys);
}

TEST(Scan, TreesAndNoXs) {
  auto fibonacci = [](Tensor a, Tensor b) {
    return scan(
        [](std::pair<Tensor, Tensor> carry, std::tuple<>) {
          auto [last, current] = carry;
          return std::pair(std::pair(current, last + current), current);
        },
        std::pair(a, b), std::tuple<>(), 8);
  };
  auto [carry, ys] = fibonacci(Tensor::scalar(0), Tensor::scalar(1));
  EXPECT_THAT(floats(ys), ElementsAre(1, 1, 2, 3, 5, 8, 13, 21));
  EXPECT_EQ(carry.second.item<float>(), 34);
  expect_same_jitted(fibonacci, Tensor::scalar(0), Tensor::scalar(1));
}

TEST(Scan, NoSteps) {
  auto fn = [](Tensor h) {
    return scan([](Tensor c, std::tuple<>) { return std::pair(c + 1.0f, c * 2.0f); }, h,
                std::tuple<>(), 0);
  };
  auto [carry, ys] = fn(vector_of({1, 2}));
  EXPECT_THAT(floats(carry), ElementsAre(1, 2));
  EXPECT_EQ(ys.shape(), (Shape{0, 2}));
  expect_same_jitted(fn, vector_of({1, 2}));
  auto loss = [&](Tensor h) { return ops::sum(fn(h).first * fn(h).first); };
  EXPECT_THAT(floats(grad(loss)(vector_of({1, 2}))), ElementsAre(2, 4));
}

TEST(Scan, ParametersAreCarried) {
  Parameter total(Tensor::zeros({2}), "total");
  auto fn = [&](Tensor xs) {
    return scan(
               [&](std::tuple<>, Tensor x) {
                 total.assign(total + x);
                 return std::pair(std::tuple<>(), total * 2.0f);
               },
               std::tuple<>(), xs)
        .second;
  };
  Tensor xs = Tensor::from_host(std::vector<float>{1, 2, 3, 4, 5, 6}, {3, 2});
  EXPECT_THAT(floats(fn(xs)), ElementsAre(2, 4, 8, 12, 18, 24));
  EXPECT_THAT(floats(total), ElementsAre(9, 12));
  auto jitted = jit(fn);
  EXPECT_THAT(floats(jitted(xs)), ElementsAre(20, 28, 26, 36, 36, 48));
  EXPECT_THAT(floats(total), ElementsAre(18, 24));
  EXPECT_THAT(floats(jitted(xs)), ElementsAre(38, 52, 44, 60, 54, 72));
}

TEST(Scan, DrawsNewNumbersInEveryStep) {
  auto fn = [] {
    return scan(
               [](std::tuple<>, std::tuple<>) {
                 return std::pair(std::tuple<>(), ops::random_uniform(Shape{2}, 0, 1));
               },
               std::tuple<>(), std::tuple<>(), 3)
        .second;
  };
  set_seed(3);
  Tensor eager = fn();
  set_seed(3);
  EXPECT_EQ(floats(jit(fn)()), floats(eager));
  EXPECT_NE(floats(eager)[0], floats(eager)[2]);
}

TEST(Scan, Gradients) {
  Parameter w(vector_of({.9f, 1.1f}), "w");
  Tensor h = vector_of({.5f, -.5f});
  for (bool reverse : {false, true}) {
    auto loss = [&](auto run) {
      return [&w, run, reverse](Tensor a, Tensor xs) {
        auto [carry, ys] = run(a, xs, w.value(), reverse);
        return ops::sum(carry * carry) + ops::sum(ys * ys * ys);
      };
    };
    auto looped = value_and_grad(loss(folded), std::vector<int>{0, 1}, {w});
    auto written_out = value_and_grad(loss(unrolled), std::vector<int>{0, 1}, {w});
    std::vector<Tensor> got = leaves_of(looped(h, sequence()));
    std::vector<Tensor> expected = leaves_of(written_out(h, sequence()));
    ASSERT_EQ(got.size(), 4u);
    for (size_t i = 0; i < got.size(); ++i) expect_near(got[i], expected[i], 1e-5f);
    expect_same_jitted(looped, h, sequence());
  }
}

TEST(Scan, SecondDerivatives) {
  Tensor h = vector_of({.5f, -.5f}), w = vector_of({.9f, 1.1f});
  auto twice = [&](auto run) {
    auto loss = [run](Tensor a, Tensor xs, Tensor weight) {
      auto [carry, ys] = run(a, xs, weight, false);
      return ops::sum(carry * carry) + ops::sum(ys * ys * ys);
    };
    return grad(
        [loss](Tensor a, Tensor xs, Tensor weight) {
          Tensor sum = Tensor::scalar(0);
          for (Tensor& g : grad(loss, std::vector<int>{0, 1, 2})(a, xs, weight)) {
            sum = sum + ops::sum(g * g);
          }
          return sum;
        },
        std::vector<int>{0, 1, 2});
  };
  std::vector<Tensor> got = twice(folded)(h, sequence(), w);
  std::vector<Tensor> expected = twice(unrolled)(h, sequence(), w);
  for (size_t i = 0; i < got.size(); ++i) expect_near(got[i], expected[i], 1e-3f);
  std::vector<Tensor> jitted = jit(twice(folded))(h, sequence(), w);
  for (size_t i = 0; i < got.size(); ++i) expect_near(jitted[i], expected[i], 1e-3f);
}

}  // namespace
}  // namespace ballast::tests
