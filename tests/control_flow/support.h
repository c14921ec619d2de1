// What the tests of control flow run, and what they compare it with: the loop written out.
#pragma once

#include "frontend/ballast_frontend.h"
#include "frontend/test_support.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace ballast::tests {

using testing::AllOf;
using testing::ElementsAre;
using testing::FloatNear;
using testing::HasSubstr;
using testing::Pointwise;

inline Tensor vector_of(const std::vector<float>& values) {
  return Tensor::from_host(values, {static_cast<int64_t>(values.size())});
}

inline std::vector<float> floats(const Tensor& tensor) { return tensor.to_host<float>(); }

inline void expect_near(const Tensor& got, const Tensor& expected, float tolerance = 1e-4f) {
  EXPECT_EQ(got.type(), expected.type());
  EXPECT_THAT(floats(got), Pointwise(FloatNear(tolerance), floats(expected)));
}

// `fn` gives the same bits eagerly and jitted at O0, and almost the same at O1.
template <class F, class... Args>
inline void expect_same_jitted(F fn, const Args&... args) {
  std::vector<Tensor> eager = leaves_of(fn(args...));
  JitOptions plain, fused;
  plain.level = JitLevel::kO0;
  fused.level = JitLevel::kO1;
  auto reference = jit(fn, plain), fast = jit(fn, fused);
  for (int run = 0; run < 2; ++run) {
    std::vector<Tensor> same = leaves_of(reference(args...)), close = leaves_of(fast(args...));
    for (size_t i = 0; i < eager.size(); ++i) {
      EXPECT_EQ(same[i].type(), eager[i].type());
      EXPECT_EQ(same[i].to_host_bytes(), eager[i].to_host_bytes()) << "result " << i;
      if (eager[i].dtype() == DType::kF32) expect_near(close[i], eager[i]);
    }
  }
}

// What the tests run: a step that mixes a carry, an input and a weight.
inline Tensor mixed(const Tensor& h, const Tensor& x, const Tensor& w) {
  return ops::tanh(h * w + ops::sin(x));
}

inline const Tensor& sequence() {
  static const Tensor xs = Tensor::on_host(
      std::vector<float>{.1f, -.4f, .9f, .3f, .7f, -.2f, .5f, 1.1f, -.6f, .8f}, {5, 2});
  return xs;
}

inline Tensor row(const Tensor& xs, int64_t i) {
  return ops::reshape(ops::slice(xs, {i, 0}, {1, -1}), {xs.shape()[1]});
}

// Lists {x, x}, {x} and {x}, {x, x}: as many leaves, nested differently.
inline auto regrouped(const Tensor& x, bool is_even) {
  using List = std::vector<Tensor>;
  return is_even ? std::vector<List>{{x}, {x, x}} : std::vector<List>{{x, x}, {x}};
}

inline auto absolute(const Tensor& x) {
  return cond(
      ops::less(ops::sum(x), 0), [](Tensor a) { return -a; }, [](Tensor a) { return a * 2.0f; }, x);
}

inline auto folded(const Tensor& h, const Tensor& xs, const Tensor& w, bool reverse = false) {
  return scan(
      [&](Tensor carry, Tensor x) {
        Tensor next = mixed(carry, x, w);
        return std::pair(next, next * x);
      },
      h, xs, {}, reverse);
}

inline std::pair<Tensor, Tensor> unrolled(Tensor h, const Tensor& xs, const Tensor& w,
                                          bool reverse = false) {
  int64_t n = xs.shape()[0];
  std::vector<Tensor> ys(static_cast<size_t>(n));
  for (int64_t step = 0; step < n; ++step) {
    int64_t i = reverse ? n - 1 - step : step;
    h = mixed(h, row(xs, i), w);
    ys[static_cast<size_t>(i)] = h * row(xs, i);
  }
  return {h, ops::stack(ys)};
}

// Doubles x until the sum is at least `limit`.
inline auto doubled(const Tensor& x, const Tensor& limit) {
  return while_loop([&](Tensor a) { return ops::less(ops::sum(a), limit); },
                    [](Tensor a) { return a * 2.0f; }, x);
}

}  // namespace ballast::tests
