// What a jitted function does with the arguments it may consume.
#include "frontend/ballast_frontend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <numeric>

namespace ballast::tests {
namespace {

using testing::HasSubstr;
using Values = std::vector<float>;

constexpr int64_t kLarge = 1 << 20;
constexpr uint64_t kLargeBytes = kLarge * sizeof(float);
constexpr uint64_t kSmall = 4096;  // scalars and the like

Tensor ramp(const Shape& shape) {
  const TensorType type{DType::kF32, shape};
  Values values(static_cast<size_t>(type.elements()));
  std::iota(values.begin(), values.end(), -3.0f);
  return Tensor::from_host<float>(values, shape);
}

Values values_of(const Tensor& tensor) { return tensor.to_host<float>(); }

JitOptions donate_at(JitLevel level, std::vector<size_t> arguments) {
  JitOptions options = donate(std::move(arguments));
  options.level = level;
  return options;
}

// The most memory in use while `run` runs, beside what was before.
uint64_t peak_of(const std::function<void()>& run) {
  synchronize();
  reset_peak_memory();
  const uint64_t before = memory_stats().in_use;
  run();
  synchronize();
  return memory_stats().peak_in_use - before;
}

void expect_donated(const Tensor& tensor) {
  EXPECT_THAT([&] { tensor.to_host<float>(); },
              testing::ThrowsMessage<Error>(HasSubstr("was donated at donation_test.cpp")));
}

// ---- memory

TEST(DonationTest, AnOutputTakesTheArgumentsMemory) {
  auto step = [](Tensor x) { return ops::sin(x) * 0.5f + x; };
  auto plain = jit(step), donating = jit(step, donate({0}));
  auto train = [](auto& f) {
    return [&f] {
      Tensor x = Tensor::ones({kLarge});
      for (int i = 0; i < 4; ++i) x = f(x);
    };
  };
  train(plain)();
  train(donating)();
  EXPECT_EQ(plain.info().donated_bytes, 0u);
  EXPECT_EQ(donating.info().donated_bytes, kLargeBytes);
  // Beside x itself: two to write into in turn, or nothing.
  auto fresh = jit(step), fresh_donating = jit(step, donate({0}));
  EXPECT_GE(peak_of(train(fresh)), 2 * kLargeBytes);
  EXPECT_LE(peak_of(train(fresh_donating)), kLargeBytes + kSmall);
}

TEST(DonationTest, WhatFindsNoOutputGoesBackToThePool) {
  auto f = jit([](Tensor x, Tensor y) { return ops::sum(x) + y; }, donate({0}));
  const Tensor one = Tensor::scalar(1);
  f(Tensor::ones({kLarge}), one);
  Tensor x = Tensor::ones({kLarge});
  const uint64_t before = memory_stats().in_use;
  const Tensor y = f(x, one);
  EXPECT_EQ(f.info().donated_bytes, 0u);
  EXPECT_LE(memory_stats().in_use, before - kLargeBytes + kSmall);
  EXPECT_EQ(y.item<float>(), kLarge + 1);
  expect_donated(x);
}

TEST(DonationTest, WhatAnotherFunctionKeepsToWriteAgainIsNoOwner) {
  auto make = jit([](Tensor x) { return x + 1; });
  auto f = jit([](Tensor x) { return x * 2; }, donate({0}));
  f(make(Tensor::ones({kLarge})));
  Tensor x = make(Tensor::ones({kLarge}));
  EXPECT_EQ(peak_of([&] { x = f(x); }), 0u);
  make(Tensor::zeros({kLarge}));  // writes elsewhere
  make(Tensor::zeros({kLarge}));
  EXPECT_EQ(values_of(x)[kLarge - 1], 4);
}

// ---- values

class DonationLevels : public testing::TestWithParam<JitLevel> {};
INSTANTIATE_TEST_SUITE_P(Levels, DonationLevels, testing::Values(JitLevel::kO0, JitLevel::kO1));

TEST_P(DonationLevels, ArgumentsThatTradePlaces) {
  // Each output is made of both arguments; what is written first must not be read afterwards.
  auto f = [](Tensor a, Tensor b) { return std::pair(ops::exp(b * 0.01f) - a, a * b); };
  auto donating = jit(f, donate_at(GetParam(), {0, 1}));
  auto plain = jit(f, JitOptions{GetParam()});
  Tensor a = ramp({2, 3}), b = ramp({2, 3}) * 0.5f, c = a * 1, d = b * 1;
  for (int i = 0; i < 5; ++i) {
    std::tie(a, b) = donating(b, a);
    std::tie(c, d) = plain(d, c);
    EXPECT_EQ(values_of(a), values_of(c));
    EXPECT_EQ(values_of(b), values_of(d));
  }
  EXPECT_EQ(donating.compile_count(), 1u);
}

TEST_P(DonationLevels, OpsThatCannotWorkInPlace) {
  auto turn = jit([](Tensor x) { return ops::transpose(x, {1, 0}); }, donate_at(GetParam(), {0}));
  EXPECT_EQ(values_of(turn(ramp({3, 3}))), values_of(ops::transpose(ramp({3, 3}), {1, 0})));
  auto square = jit([](Tensor x) { return ops::matmul(x, x); }, donate_at(GetParam(), {0}));
  EXPECT_EQ(values_of(square(ramp({8, 8}))), values_of(ops::matmul(ramp({8, 8}), ramp({8, 8}))));
}

TEST_P(DonationLevels, ArgumentsThatAreReturnedDroppedOrUnused) {
  auto f = jit([](Tensor a, Tensor b) { return std::tuple(b, a, a + b, b); },
               donate_at(GetParam(), {0, 1}));
  auto [b, a, sum, again] = f(ramp({3}), ramp({3}) * 2);
  EXPECT_EQ(values_of(a), (Values{-3, -2, -1}));
  EXPECT_EQ(values_of(b), (Values{-6, -4, -2}));
  EXPECT_EQ(values_of(again), (Values{-6, -4, -2}));
  EXPECT_EQ(values_of(sum), (Values{-9, -6, -3}));
  auto unused = jit([](Tensor, Tensor y) { return y + 1; }, donate_at(GetParam(), {0}));
  EXPECT_EQ(values_of(unused(ramp({3}), ramp({3}))), (Values{-2, -1, 0}));
  EXPECT_EQ(unused.info().donated_bytes, 12u);
}

TEST_P(DonationLevels, ControlFlowAndParametersBesideThem) {
  Parameter w(Tensor::scalar(2), "w");
  auto f = jit(
      [&](Tensor x) {
        w.assign(w + 1);
        return fori_loop(
            0, 3, [&](Tensor, Tensor c) { return c * w; }, x);
      },
      donate_at(GetParam(), {0}));
  Tensor x = ramp({2});
  x = f(x);
  EXPECT_EQ(values_of(x), (Values{-81, -54}));
  x = f(x);
  EXPECT_EQ(values_of(x), (Values{-81 * 64, -54 * 64}));
  EXPECT_EQ(w.value().item<float>(), 4);
}

TEST(DonationTest, LeavesOfATreeAndHostTensors) {
  auto f = jit([](std::vector<Tensor> xs, Tensor y) { return xs[0] * y + xs[1]; }, donate({0}));
  const Tensor y = Tensor::on_host<float>({1, 2}, {2});
  const std::vector<Tensor> xs = {Tensor::on_host<float>({3, 4}, {2}), ramp({2})};
  EXPECT_EQ(values_of(f(xs, y)), (Values{0, 6}));
  expect_donated(xs[0]);
  expect_donated(xs[1]);
  EXPECT_EQ(values_of(f(std::vector{Tensor::scalar(2), ramp({2})}, y)), (Values{-1, 2}));
  EXPECT_EQ(values_of(y), (Values{1, 2}));
}

// ---- who else holds the value

TEST(DonationTest, CopiesOfATensorAreTheTensor) {
  auto f = jit([](Tensor x) { return x + 1; }, donate({0}));
  const Tensor x = ramp({3}), copy = x;
  f(x);
  expect_donated(copy);
  EXPECT_EQ(copy.shape(), (Shape{3}));
  EXPECT_EQ(copy.to_string(), "donated f32[3]");
}

TEST(DonationTest, OtherTensorsAndParametersKeepTheirValue) {
  auto f = jit([](Tensor x) { return x + 1; }, donate({0}));
  const Tensor x = ramp({2, 2}), view = ops::reshape(x, {4});
  EXPECT_EQ(values_of(f(x)), (Values{-2, -1, 0, 1}));
  EXPECT_EQ(values_of(view), (Values{-3, -2, -1, 0}));
  Parameter w(ramp({3}), "w");
  const Tensor read = w;
  EXPECT_EQ(values_of(f(read)), (Values{-2, -1, 0}));
  EXPECT_EQ(values_of(w), (Values{-3, -2, -1}));
  expect_donated(read);
}

TEST(DonationTest, InsideOfATraceNothingIsDonated) {
  auto f = jit([](Tensor x) { return x * x; }, donate({0}));
  const Tensor x = ramp({3});
  auto outer = jit([&](Tensor y) { return f(y) + f(x) + y; });
  EXPECT_EQ(values_of(outer(x)), (Values{15, 6, 1}));
  EXPECT_EQ(values_of(grad([&](Tensor y) { return ops::sum(f(y)); })(x)), (Values{-6, -4, -2}));
  EXPECT_EQ(values_of(vmap(f)(x)), (Values{9, 4, 1}));
  EXPECT_EQ(values_of(x), (Values{-3, -2, -1}));
  EXPECT_EQ(f.compile_count(), 0u);
}

TEST(DonationTest, ACallThatFailsConsumesNothing) {
  const Tensor x = ramp({3});
  auto f = jit([](Tensor a, Tensor b) { return a + b; }, donate({0}));
  EXPECT_THROW(f(x, Tensor()), Error);
  EXPECT_THROW(f(x, ramp({2})), Error);
  EXPECT_THROW(f(x, x), Error);
  EXPECT_EQ(values_of(f(x, ramp({3}))), (Values{-6, -4, -2}));
  expect_donated(x);
}

TEST(DonationTest, EveryUseAfterwardsIsAnError) {
  const Tensor x = ramp({3}), number = Tensor::scalar(2), host = Tensor::on_host<float>({1}, {1});
  auto captures = jit([&](Tensor y) { return y + x; });
  captures(ramp({3}));
  auto pullback = vjp([](Tensor y) { return ops::sum(y * y); }, x).second;
  auto f = jit([](Tensor a, Tensor b, Tensor c) { return a * b + c; }, donate({0, 1, 2}));
  f(x, number, host);
  Parameter w(ramp({3}), "w");
  const std::vector<std::function<void()>> uses = {
      [&] { ops::exp(x); },
      [&] { x + 1; },
      [&] {
        ops::reshape(x, {3, 1});
      },
      [&] { x.to_host_bytes(); },
      [&] { x.sync(); },
      [&] { w.assign(x); },
      [&] { Parameter(x, "v"); },
      [&] { jit([](Tensor y) { return y; })(x); },
      [&] { jit([&](Tensor y) { return y * x; })(w); },
      [&] { jit([&](Tensor y) { return y * number; })(w); },
      [&] { jit([&](Tensor y) { return y * host; })(w); },
      [&] { sink(jit([](Tensor y) { return y; }))(2, repeat(x)); },
      [&] { captures(ramp({3})); },
      [&] { pullback(Tensor::scalar(1)); },
      [&] { ops::exp(host); },
      [&] { number.item<float>(); },
      [&] { host.to_device(); },
      [&] { f(x, ramp({3}), ramp({3})); },
  };
  for (size_t i = 0; i < uses.size(); ++i) {
    EXPECT_THAT(uses[i],
                testing::ThrowsMessage<Error>(HasSubstr("was donated at donation_test.cpp")))
        << i;
  }
}

TEST(DonationTest, AnErrorOfACallWithEightArgumentsNamesItsLine) {
  auto sum = jit([](Tensor a, Tensor b, Tensor c, Tensor d, Tensor e, Tensor f, Tensor g,
                    Tensor h) { return a + b + c + d + e + f + g + h; },
                 donate({0}));
  const Tensor x = ramp({2});
  const int line = __LINE__ + 1;
  const auto call = [&] { return sum(x, x, x, x, x, x, x, x); };
  EXPECT_THAT(call, testing::ThrowsMessage<Error>(
                        HasSubstr(fmt::format("(at donation_test.cpp:{})", line))));
}

// ---- parameters that share memory, or trade it

TEST(SharedStatesTest, ParametersThatAreAssignedEachOther) {
  Parameter a(ramp({3}), "a"), b(ramp({3}) * 10, "b");
  auto difference = jit([&](Tensor x) { return (a - b) * x; });
  const Tensor one = Tensor::ones({3});
  EXPECT_EQ(values_of(difference(one)), (Values{27, 18, 9}));
  const Tensor was = a;
  a.assign(b);
  EXPECT_EQ(values_of(difference(one)), (Values{0, 0, 0}));
  b.assign(was);
  EXPECT_EQ(values_of(difference(one)), (Values{-27, -18, -9}));
  auto step = jit([&](Tensor x) {
    a.assign(a + x);
    return a * b;
  });
  b.assign(a);
  EXPECT_EQ(values_of(step(one)), (Values{870, 380, 90}));
  EXPECT_EQ(values_of(b), (Values{-30, -20, -10}));
}

}  // namespace
}  // namespace ballast::tests
