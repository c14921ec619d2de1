// jvp and vmap of control flow, and what they make of each other.
#include "tests/control_flow/support.h"

namespace ballast::tests {
namespace {

const Tensor& start() {
  static const Tensor h = Tensor::on_host(std::vector<float>{.5f, -.5f}, {2});
  return h;
}
const Tensor& weight() {
  static const Tensor w = Tensor::on_host(std::vector<float>{.9f, 1.1f}, {2});
  return w;
}

// Three examples of each.
Tensor examples_of(const Tensor& x) { return ops::stack({x, x * -1.5f, x + 0.25f}); }

template <class F>
void expect_mapped(F fn, const Tensor& examples) {
  auto mapped = vmap(fn);
  std::vector<Tensor> got = leaves_of(mapped(examples)), jitted = leaves_of(jit(mapped)(examples));
  for (int64_t example = 0; example < examples.shape()[0]; ++example) {
    std::vector<int64_t> begin(examples.shape().size(), 0), sizes = examples.shape();
    begin[0] = example;
    sizes[0] = 1;
    Shape shape(examples.shape().begin() + 1, examples.shape().end());
    std::vector<Tensor> one =
        leaves_of(fn(ops::reshape(ops::slice(examples, begin, sizes), shape)));
    for (size_t i = 0; i < one.size(); ++i) {
      for (const Tensor& all : {got[i], jitted[i]}) {
        std::vector<int64_t> from(all.shape().size(), 0), extents = all.shape();
        from[0] = example;
        extents[0] = 1;
        expect_near(ops::reshape(ops::slice(all, from, extents), one[i].shape()), one[i], 1e-5f);
      }
    }
  }
}

// `looped` and `written_out` have the same tangents, and a gradient of them.
template <class F, class G>
void expect_same_tangents(F looped, G written_out, const Tensor& x) {
  Tensor dx = ops::cos(x);
  auto [y, dy] = jvp(looped, x, dx);
  auto [expected_y, expected_dy] = jvp(written_out, x, dx);
  expect_near(y, expected_y, 1e-5f);
  expect_near(dy, expected_dy, 1e-5f);
  auto [again, jitted] = jit([&](Tensor a) { return jvp(looped, a, ops::cos(a)); })(x);
  expect_near(jitted, expected_dy, 1e-5f);
  auto second = [&](auto fn) {
    return grad([fn](Tensor a) { return ops::sum(jvp(fn, a, ops::cos(a)).second); })(x);
  };
  expect_near(second(looped), second(written_out), 1e-4f);
}

TEST(ControlFlowTransforms, TangentsOfCond) {
  for (float sign : {1.0f, -1.0f}) {
    expect_same_tangents(
        [](Tensor x) {
          return cond(
              ops::greater(ops::sum(x), 0), [&] { return ops::sin(x) * x; }, [&] { return x * x; });
        },
        [sign](Tensor x) { return sign > 0 ? ops::sin(x) * x : x * x; },
        Tensor::on_host(std::vector<float>{sign, 2 * sign}, {2}));
  }
}

TEST(ControlFlowTransforms, TangentsOfScan) {
  expect_same_tangents([](Tensor h) { return folded(h, sequence(), weight()).second; },
                       [](Tensor h) { return unrolled(h, sequence(), weight()).second; }, start());
  expect_same_tangents([](Tensor xs) { return folded(start(), xs, weight(), true).first; },
                       [](Tensor xs) { return unrolled(start(), xs, weight(), true).first; },
                       sequence());
}

TEST(ControlFlowTransforms, TangentsOfWhile) {
  Tensor n = Tensor::on_host(std::vector<int32_t>{4}, {});
  expect_same_tangents(
      [n](Tensor w) {
        return fori_loop(
            0, n, [&](Tensor, Tensor h) { return mixed(h, h, w); }, start());
      },
      [](Tensor w) {
        Tensor h = start();
        for (int i = 0; i < 4; ++i) h = mixed(h, h, w);
        return h;
      },
      weight());
}

TEST(ControlFlowTransforms, MappedCond) {
  auto by_example = [](Tensor x) {
    return cond(
        ops::greater(ops::sum(x), 0), [&] { return std::pair(x * 2.0f, start()); },
        [&] { return std::pair(ops::sin(x), x); });
  };
  expect_mapped(by_example, examples_of(start()));
  Tensor flag = Tensor::on_host(std::vector<bool>{true}, {});
  auto for_all = [flag](Tensor x) {
    return cond(
        flag, [&] { return std::pair(x * 2.0f, start()); }, [&] { return std::pair(x, x); });
  };
  expect_mapped(for_all, examples_of(start()));
}

TEST(ControlFlowTransforms, MappedScan) {
  expect_mapped([](Tensor h) { return folded(h, sequence(), weight()); }, examples_of(start()));
  expect_mapped([](Tensor xs) { return folded(start(), xs, weight(), true); },
                examples_of(sequence()));
  expect_mapped([](Tensor w) { return folded(start(), sequence(), w); }, examples_of(weight()));
  auto loss = [](Tensor w) { return ops::sum(folded(start(), sequence(), w).second); };
  expect_mapped(grad(loss), examples_of(weight()));
}

TEST(ControlFlowTransforms, MappedWhile) {
  expect_mapped([](Tensor x) { return doubled(x, Tensor::scalar(40)); },
                ops::abs(examples_of(start())) + 0.5f);
  Tensor n = Tensor::on_host(std::vector<int32_t>{4}, {});
  auto for_all = [n](Tensor w) {
    return fori_loop(
        0, n, [&](Tensor, Tensor h) { return mixed(h, h, w); }, start());
  };
  expect_mapped(for_all, examples_of(weight()));
}

}  // namespace
}  // namespace ballast::tests
