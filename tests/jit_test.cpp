// What can be jitted, how jit nests with the transforms, and why it traces again.
#include "frontend/ballast_frontend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace ballast::tests {
namespace {

using testing::FloatNear;
using testing::Pointwise;
using Values = std::vector<float>;

const JitOptions kByKernel{JitLevel::kO0};

Tensor input() { return Tensor::from_host<float>({0.5f, -1, 2}, {3}); }

Tensor squared_sine(const Tensor& x) { return ops::sin(x) * ops::sin(x); }

struct Scaled : nn::Cell {
  Parameter factor = add("factor", Tensor::scalar(3));
  using nn::Cell::construct;
  Tensor construct(const Tensor& x) override { return x * factor; }
  Tensor twice(Tensor x) { return construct(construct(x)); }
  std::pair<Tensor, Tensor> shifted(const Tensor& x, const Tensor& by) const {
    return {x + by, x * factor};
  }
};

Values near(const Tensor& tensor) { return tensor.to_host<float>(); }

// They are equal, and their ops are not: 1 / -0 is -inf.
TEST(JitTest, AttributesOfZeroAndMinusZeroAreTwoCalls) {
  const float inf = std::numeric_limits<float>::infinity();
  const auto inverse = [](double value) {
    return 1 / ops::pad(Tensor::from_host<float>({1}, {1}), {{1, 0}}, value);
  };
  EXPECT_EQ(near(inverse(0.0)), (Values{inf, 1}));
  EXPECT_EQ(near(inverse(-0.0)), (Values{-inf, 1}));
  auto both = jit([&](const Tensor& x) {
    return std::pair{ops::pad(x, {{1, 0}}, std::nan("")), ops::pad(x, {{1, 0}}, 0.0)};
  });
  auto [with_nan, with_zero] = both(input());
  EXPECT_TRUE(std::isnan(near(with_nan)[0]));
  EXPECT_EQ(near(with_zero)[0], 0);
}

// A value per row that nothing long meets is still repeated along the row.
TEST(JitTest, RepeatedTotalsKeepTheirShape) {
  const auto repeated = [](const Tensor& x) {
    return ops::exp(ops::broadcast_to(ops::reduce_max(x, {-1}, true) * 0.01f, {2, 32}));
  };
  const auto passed = [&](const Tensor& x) { return ops::softmax(repeated(x)); };
  const Tensor rows = ops::reshape(ops::arange(0, 64), {2, 32});
  EXPECT_EQ(near(jit(repeated)(rows)), near(repeated(rows)));
  EXPECT_EQ(near(jit(passed)(rows)), near(passed(rows)));
}

TEST(JitTest, ARowTimesAMatrixMayBecomeAVector) {
  const auto product = [](const Tensor& x, const Tensor& w) {
    return ops::squeeze(ops::matmul(x, w), {0});
  };
  const Tensor x = ops::reshape(input(), {1, 3}), w = Tensor::ones({3, 4});
  EXPECT_EQ(near(jit(product)(x, w)), near(product(x, w)));
}

// ---- forms

TEST(JitFormsTest, FunctionsAndLambdas) {
  auto function = jit(squared_sine, kByKernel);
  EXPECT_EQ(near(function(input())), near(squared_sine(input())));
  auto lambda =
      jit([](Tensor x, std::vector<Tensor> more) { return x + more[0] * more[1]; }, kByKernel);
  EXPECT_EQ(near(lambda(input(), std::vector<Tensor>{input(), input()})),
            near(input() + input() * input()));
  std::function<Tensor(Tensor)> erased = [](Tensor x) { return -x; };
  EXPECT_EQ(near(jit(erased, kByKernel)(input())), near(-input()));
}

TEST(JitFormsTest, Cells) {
  Scaled cell;
  auto jitted = jit(cell, kByKernel);
  EXPECT_EQ(near(jitted(input())), near(cell(input())));
  cell.factor.assign(Tensor::scalar(5));  // a handle: the parameters are shared
  EXPECT_EQ(near(jitted(input())), near(input() * 5));
  EXPECT_EQ(jitted.compile_count(), 1u);
}

TEST(JitFormsTest, Methods) {
  Scaled cell;
  auto twice = jit(&Scaled::twice, cell, kByKernel);
  EXPECT_EQ(near(twice(input())), near(input() * 9));
  auto shifted = jit(&Scaled::shifted, cell, kByKernel);
  auto [sum, product] = shifted(input(), Tensor::scalar(1));
  EXPECT_EQ(near(sum), near(input() + 1));
  EXPECT_EQ(near(product), near(input() * 3));
}

// A construct that is compiled wherever the cell is called.
struct Jitted : nn::Cell {
  nn::Dense fc{3, 2};
  std::function<Tensor(const Tensor&)> body =
      jit([fc = fc](const Tensor& x) mutable { return ops::relu(fc(x)); }, kByKernel);
  Jitted() { add("fc", fc); }
  using nn::Cell::construct;
  Tensor construct(const Tensor& x) override { return body(x); }
};

TEST(JitFormsTest, AConstruct) {
  Jitted cell;
  const Tensor x = ops::reshape(input(), {1, 3});
  EXPECT_EQ(near(cell(x)), near(ops::relu(cell.fc(x))));
  const uint64_t before = counters().host_calls;
  cell(x);
  EXPECT_EQ(counters().host_calls - before, 1u);
}

// ---- nesting

TEST(JitNestingTest, GradientsFlowThroughEagerAroundJit) {
  Scaled cell;
  auto inner = jit([&](Tensor x) { return ops::sin(cell(x)); }, kByKernel);
  // y = sin(3 x) x; dy/dx = 3 x cos(3 x) + sin(3 x); dy/dfactor = sum x^2 cos(3 x)
  auto loss = [&](Tensor x) { return ops::sum(inner(x) * x); };
  auto [dx, dw] = grad(loss, 0, std::vector<Parameter>{cell.factor})(input());
  Values expected;
  double by_factor = 0;
  for (double x : {0.5, -1.0, 2.0}) {
    expected.push_back(static_cast<float>(3 * x * std::cos(3 * x) + std::sin(3 * x)));
    by_factor += x * x * std::cos(3 * x);
  }
  EXPECT_THAT(near(dx), Pointwise(FloatNear(1e-5f), expected));
  EXPECT_NEAR(dw[0].item<float>(), by_factor, 1e-5);
  EXPECT_EQ(inner.compile_count(), 0u);  // it was inlined
}

TEST(JitNestingTest, JitOfGradOfJitOfGradIsSecondOrder) {
  auto cube = jit([](Tensor x) { return ops::sum(x * x * x); });
  auto first = jit([&](Tensor x) { return ops::sum(grad(cube)(x)); });
  auto second = jit(grad(first));
  EXPECT_THAT(near(second(input())), Pointwise(FloatNear(1e-5f), Values{3, -6, 12}));
  EXPECT_EQ(cube.compile_count() + first.compile_count(), 0u);
}

TEST(JitNestingTest, TransformsOfAJittedFunction) {
  auto f = jit(squared_sine, kByKernel);
  const Tensor x = input(), ones = Tensor::ones({3});
  const Values slope = near(jvp(squared_sine, x, ones).second);
  EXPECT_EQ(near(jvp(f, x, ones).second), slope);
  EXPECT_EQ(near(vmap(f)(x)), near(squared_sine(x)));
  auto [y, pullback] = vjp(f, x);
  EXPECT_THAT(near(std::get<0>(pullback(ones))), Pointwise(FloatNear(1e-6f), slope));
}

TEST(JitNestingTest, AJittedFunctionInALoopOfTheHostAndInOneOfTheDevice) {
  auto step = jit([](Tensor x) { return ops::cos(x) * 0.5f; }, kByKernel);
  Tensor x = input();
  for (int i = 0; i < 3; ++i) x = step(x);
  EXPECT_EQ(near(fori_loop(
                0, 3, [&](Tensor, Tensor c) { return step(c); }, input())),
            near(x));
  EXPECT_EQ(step.compile_count(), 1u);
}

// ---- tracing again

TEST(RetraceTest, SaysWhatIsDifferent) {
  auto f = jit([](Tensor x, std::vector<Tensor> more) {
    for (const Tensor& t : more) x = x + ops::sum(ops::cast(t, DType::kF32));
    return x;
  });
  const Tensor two = Tensor::zeros({2}), three = Tensor::zeros({3});
  using List = std::vector<Tensor>;
  EXPECT_EQ(f.retrace_reason(), "");
  f(two, List{two});
  EXPECT_EQ(f.retrace_reason(), "it is the first call");
  f(three, List{two});
  EXPECT_EQ(f.retrace_reason(), "argument 0 is f32[3], was f32[2]");
  f(three, List{two, two});
  EXPECT_EQ(f.retrace_reason(), "argument 1 is 2 tensors, was 1");
  f(two, List{two, Tensor::zeros({2}, DType::kI32)});
  EXPECT_EQ(f.retrace_reason(),
            "argument 0 is f32[2], was f32[3]; leaf 1 of argument 1 is i32[2], was f32[2]");
  set_context({{}, JitLevel::kO0});
  f(two, List{two, Tensor::zeros({2}, DType::kI32)});
  EXPECT_EQ(f.retrace_reason(), "the level is O0, was O1");
  set_context({{}, JitLevel::kO1});
  EXPECT_EQ(f.compile_count(), 5u);
  f(two, List{two});  // known: the reason stays that of the last trace
  EXPECT_EQ(f.compile_count(), 5u);
  EXPECT_EQ(f.retrace_reason(), "the level is O0, was O1");
}

// The kernel that kAuto makes of many launches takes the driver seconds: signatures after the first
// few are lists until they are called often, or sunk.
TEST(RetraceTest, ManySignaturesAreListsAtFirst) {
  auto f = jit([](Tensor x) { return ops::sum(ops::softmax(x * 2) * x); });
  const auto at = [](int64_t n) { return Tensor::full({n, 3}, 0.5); };
  const auto expect = [&](int64_t n) {
    EXPECT_NEAR(f(at(n)).item<float>(), 0.5f * static_cast<float>(n), 1e-4f);
  };
  expect(1);
  const Replay usual = f.info().replay;
  for (int64_t n = 2; n <= 6; ++n) {
    expect(n);
    EXPECT_EQ(f.info().replay, n <= 4 ? usual : Replay::kList) << n;
  }
  for (size_t call = 1; call < JitCache::kCallsOfList; ++call) f(at(6));
  EXPECT_EQ(f.info().replay, Replay::kList);
  expect(6);
  EXPECT_EQ(f.info().replay, usual);
  expect(5);
  EXPECT_EQ(f.info().replay, Replay::kList);
  sink(f)(2, repeat(at(5)));
  EXPECT_EQ(f.info().replay, usual);
  EXPECT_EQ(f.compile_count(), 6u);
}

TEST(RetraceTest, FollowsTheNestingOfArgumentsAndResults) {
  using Lists = std::vector<std::vector<Tensor>>;
  auto f = jit([](const Lists& x) {
    Tensor sum = Tensor::scalar(0);
    for (const Tensor& t : x[0]) sum = sum + t;
    return std::pair(sum, x);
  });
  const Tensor a = Tensor::scalar(1), b = Tensor::scalar(10), c = Tensor::scalar(100);
  EXPECT_EQ(f(Lists{{a, b}, {c}}).first.item<float>(), 11);
  const auto [sum, same] = f(Lists{{a}, {b, c}});
  EXPECT_EQ(sum.item<float>(), 1);
  ASSERT_EQ(same[0].size(), 1u);
  EXPECT_EQ(same[1][1].item<float>(), 100);
  EXPECT_EQ(f.retrace_reason(), "the arguments are nested otherwise");
  f(Lists{{b, b}, {b}});
  EXPECT_EQ(f.compile_count(), 2u);
}

// A generic function is another one for arguments of other C++ types.
TEST(RetraceTest, FollowsTheTypesOfTrees) {
  auto f = jit([](const auto& x) { return leaves_of(std::get<0>(x)).back(); });
  const Tensor a = Tensor::scalar(1), b = Tensor::scalar(10), c = Tensor::scalar(100);
  EXPECT_EQ(f(std::pair(std::pair(a, b), c)).item<float>(), 10);
  EXPECT_EQ(f(std::pair(a, std::pair(b, c))).item<float>(), 1);
  EXPECT_EQ(f.compile_count(), 2u);
}

TEST(RetraceTest, FollowsTrainingFlagsOfCellsItCalls) {
  nn::Dropout dropout(0.5f);
  auto f = jit([&](Tensor x) { return dropout(x); }, kByKernel);
  EXPECT_EQ(near(f(input())), near(input()));
  dropout.set_train();
  EXPECT_NE(near(f(input())), near(input()));
  EXPECT_EQ(f.retrace_reason(), "Dropout's training flag is on, was off");
  dropout.set_train(false);
  EXPECT_EQ(near(f(input())), near(input()));
  EXPECT_EQ(f.compile_count(), 2u);
  nn::Dropout unrelated(0.5f);
  unrelated.set_train();
  f(input());
  EXPECT_EQ(f.compile_count(), 2u);
}

TEST(RetraceTest, IsLoggedWhereAskedFor) {
  auto f = jit([](Tensor x) { return x + 1; });
  const int line = __LINE__ - 1;
  setenv("BALLAST_VERBOSE", "1", 1);
  testing::internal::CaptureStderr();
  f(input());
  f(Tensor::zeros({2}));
  const std::string log = testing::internal::GetCapturedStderr();
  unsetenv("BALLAST_VERBOSE");
  const std::string name = "tracing the function jitted at jit_test.cpp:" + std::to_string(line);
  EXPECT_THAT(log, testing::HasSubstr(name + ": it is the first call\n"));
  EXPECT_THAT(log, testing::HasSubstr(name + ": argument 0 is f32[2], was f32[3]\n"));
}

}  // namespace
}  // namespace ballast::tests
