// cond: values, assignments and gradients.
#include "tests/control_flow/support.h"

namespace ballast::tests {
namespace {

TEST(Cond, TakesTheBranchOfItsPredicate) {
  EXPECT_THAT(floats(absolute(vector_of({-1, -2}))), ElementsAre(1, 2));
  EXPECT_THAT(floats(absolute(vector_of({1, 2}))), ElementsAre(2, 4));
  expect_same_jitted(absolute, vector_of({-1, -2}));
  expect_same_jitted(absolute, vector_of({1, 2}));
}

TEST(Cond, AJittedFunctionDecidesAnewInEveryCall) {
  auto fn = jit(absolute);
  EXPECT_THAT(floats(fn(vector_of({-1, -2}))), ElementsAre(1, 2));
  EXPECT_THAT(floats(fn(vector_of({1, 2}))), ElementsAre(2, 4));
  EXPECT_THAT(floats(fn(vector_of({-3, 1}))), ElementsAre(3, -1));
  EXPECT_EQ(fn.compile_count(), 1u);
}

TEST(Cond, ANumberDecidesWhenTracing) {
  auto fn = jit([](Tensor x) {
    return cond(
        true, [&] { return x + 1.0f; }, [&] { return x; });
  });
  EXPECT_THAT(floats(fn(vector_of({1}))), ElementsAre(2));
  EXPECT_EQ(to_string(fn.program()).find("cond"), std::string::npos);
}

TEST(Cond, BranchesCloseOverTensorsAndParametersAndReturnTrees) {
  Parameter w(vector_of({2, 3}), "w");
  Tensor outer = vector_of({10, 20});
  auto fn = [&](Tensor x) {
    Tensor inner = x * 2.0f;
    return cond(
        ops::greater(ops::sum(x), 0), [&] { return std::pair(inner + w, outer); },
        [&] { return std::pair(x - outer, x * w); });
  };
  for (float sign : {1.0f, -1.0f}) {
    auto [a, b] = fn(vector_of({sign, sign}));
    EXPECT_THAT(floats(a), ElementsAre(sign > 0 ? 4 : -11, sign > 0 ? 5 : -21));
    EXPECT_THAT(floats(b), ElementsAre(sign > 0 ? 10 : -2, sign > 0 ? 20 : -3));
    expect_same_jitted(fn, vector_of({sign, sign}));
  }
}

TEST(Cond, AssignmentsHappenInTheBranchTaken) {
  Parameter count(Tensor::scalar(0), "count"), other(Tensor::scalar(5), "other");
  auto step = [&](Tensor x) {
    cond(
        ops::greater(x, 0), [&] { count.assign(count + 1.0f); },
        [&] { other.assign(other - 1.0f); });
    return count.value();
  };
  auto fn = jit(step);
  for (float x : {1.0f, -1.0f, 2.0f}) step(Tensor::scalar(x)), fn(Tensor::scalar(x));
  EXPECT_EQ(count.value().item<float>(), 4);
  EXPECT_EQ(other.value().item<float>(), 3);
}

TEST(Cond, BranchesReturnTreesThatAreNestedAlike) {
  auto fn = [](Tensor x) {
    return cond(
        ops::greater(x, 0), [&] { return regrouped(x, false); },
        [&] { return regrouped(x, true); });
  };
  EXPECT_THAT(message_of([&] { jit(fn)(Tensor::scalar(1)); }),
              HasSubstr("[cond] one branch returns a tree with vectors of [2, 2, 1], the other of "
                        "[2, 1, 2] (at cond_test.cpp:"));
}

TEST(Cond, Gradients) {
  Parameter w(vector_of({2, 3}), "w");
  auto fn = [&](Tensor x) {
    return ops::sum(cond(
        ops::greater(ops::sum(x), 0), [&] { return x * x * w; }, [&] { return ops::sin(x); }));
  };
  auto both = value_and_grad(fn, 0, {w});
  auto [value, gradients] = both(vector_of({1, 2}));
  EXPECT_EQ(value.item<float>(), 14);
  EXPECT_THAT(floats(gradients.first), ElementsAre(4, 12));
  EXPECT_THAT(floats(gradients.second[0]), ElementsAre(1, 4));
  auto negative = both(vector_of({-1, -2})).second;
  EXPECT_THAT(floats(negative.first),
              ElementsAre(FloatNear(std::cos(-1.0f), 1e-5f), FloatNear(std::cos(-2.0f), 1e-5f)));
  EXPECT_THAT(floats(negative.second[0]), ElementsAre(0, 0));
  expect_same_jitted(both, vector_of({1, 2}));
  expect_same_jitted(both, vector_of({-1, -2}));
  auto second = grad([&](Tensor x) { return ops::sum(grad(fn)(x)); });
  EXPECT_THAT(floats(second(vector_of({1, 2}))), ElementsAre(4, 6));
  EXPECT_THAT(floats(jit(second)(vector_of({1, 2}))), ElementsAre(4, 6));
}

}  // namespace
}  // namespace ballast::tests
