// vmap against calls one by one, for every op; how it is called; and what it composes with.
#include "frontend/ballast_frontend.h"
#include "frontend/program/primitive.h"
#include "tests/op_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace ballast::tests {
namespace {

using testing::ElementsAre;

constexpr int64_t kExamples = 3;

// The same values in another order: an input as valid as the first.
HostArray rotated(HostArray array, size_t by) {
  if (array.values.empty()) return array;
  auto middle = array.values.begin() + static_cast<std::ptrdiff_t>(by % array.values.size());
  std::rotate(array.values.begin(), middle, array.values.end());
  return array;
}

HostArray stacked(const std::vector<HostArray>& arrays) {
  HostArray all{arrays[0].type, {}};
  all.type.shape.insert(all.type.shape.begin(), static_cast<int64_t>(arrays.size()));
  for (const HostArray& array : arrays) {
    all.values.insert(all.values.end(), array.values.begin(), array.values.end());
  }
  return all;
}

// `row` with the inputs in `is_mapped` different for each example.
void check_mapped(const OpCase& row, const std::vector<bool>& is_mapped) {
  std::vector<std::vector<HostArray>> examples(row.inputs.size());
  std::vector<TensorType> types;
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < row.inputs.size(); ++i) {
    for (size_t e = 0; e < kExamples; ++e) {
      examples[i].push_back(is_mapped[i] ? rotated(row.inputs[i], e) : row.inputs[i]);
    }
    types.push_back(row.inputs[i].type);
    inputs.push_back(to_tensor(is_mapped[i] ? stacked(examples[i]) : row.inputs[i]));
  }
  auto op = [&row](const std::vector<Tensor>& in) { return ops::call(row.op, in, row.attrs); };
  const Mapped results = run_mapped(trace(op, types), inputs, is_mapped, kExamples);
  std::vector<std::vector<HostArray>> expected(results.outputs.size());
  for (size_t e = 0; e < kExamples; ++e) {
    std::vector<Tensor> one;
    for (size_t i = 0; i < inputs.size(); ++i) one.push_back(to_tensor(examples[i][e]));
    const std::vector<Tensor> outputs = op(one);
    for (size_t o = 0; o < outputs.size(); ++o) expected[o].push_back(to_array(outputs[o]));
  }
  for (size_t o = 0; o < expected.size(); ++o) {
    const HostArray actual = to_array(results.outputs[o]);
    const HostArray want = results.is_mapped[o] ? stacked(expected[o]) : expected[o][0];
    EXPECT_EQ(difference(actual, want, 1e-5, 2e-5), "")
        << "output " << o << ", mapped inputs " << testing::PrintToString(is_mapped);
  }
}

class MappedOpTest : public testing::TestWithParam<OpCase> {};

TEST_P(MappedOpTest, EqualsOneByOne) {
  const size_t count = GetParam().inputs.size();
  if (count == 0) GTEST_SKIP() << "has nothing to map over";
  check_mapped(GetParam(), std::vector<bool>(count, true));
  for (size_t i = 0; count > 1 && i < std::min<size_t>(count, 8); ++i) {
    std::vector<bool> one(count, false);
    one[i] = true;
    check_mapped(GetParam(), one);
  }
}

// The samples of an op that have elements, up to a number.
std::vector<OpCase> mapped_cases() {
  constexpr size_t kSamplesPerOp = 8;
  std::map<std::string, size_t> seen;
  std::vector<OpCase> cases;
  for (const OpCase& row : op_table()) {
    if (seen[row.op]++ < kSamplesPerOp) cases.push_back(row);
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Table, MappedOpTest, testing::ValuesIn(mapped_cases()),
                         [](const testing::TestParamInfo<OpCase>& row) {
                           return row.param.op + "_" + std::to_string(row.index);
                         });

TEST(VmapTest, WhatRunsExampleByExample) {
  std::vector<std::string> names;
  for (const std::string& name : primitive_names()) {
    const Primitive& row = *find_primitive(name);
    if (!row.vmap && !row.is_identity) names.push_back(name);
  }
  EXPECT_THAT(names, ElementsAre("arange", "bernoulli", "fill", "print", "randint", "random_bits",
                                 "random_normal", "random_permutation", "random_uniform",
                                 "truncated_normal"));
}

Tensor matrix(const std::vector<float>& values, int64_t rows) {
  return Tensor::from_host(values, {rows, static_cast<int64_t>(values.size()) / rows});
}
Tensor vector(const std::vector<float>& values) {
  return Tensor::from_host(values, {static_cast<int64_t>(values.size())});
}
std::vector<float> floats(const Tensor& tensor) { return tensor.to_host<float>(); }

// Number `i` along axis 0.
Tensor part(const Tensor& tensor, int64_t i) {
  return ops::gather(tensor, Tensor::scalar(static_cast<double>(i), DType::kI32));
}

TEST(VmapTest, AxesOfArgumentsAndResults) {
  auto dot = [](Tensor a, Tensor b) { return ops::sum(a * b); };
  const Tensor rows = matrix({1, 2, 3, 4, 5, 6}, 3), weights = vector({1, 10});
  EXPECT_THAT(floats(vmap(dot, {0, std::nullopt})(rows, weights)), ElementsAre(21, 43, 65));
  const Tensor columns = ops::transpose(rows);
  EXPECT_THAT(floats(vmap(dot, {-1, std::nullopt})(columns, weights)), ElementsAre(21, 43, 65));
  EXPECT_THAT(floats(vmap(dot, {1, 0})(columns, rows)), ElementsAre(5, 25, 61));

  auto twice = [](Tensor x) { return std::pair(2.0f * x, ops::sum(x)); };
  auto [doubled, sums] = vmap(twice, 0, {1, 0})(rows);
  EXPECT_EQ(doubled.shape(), (Shape{2, 3}));
  EXPECT_THAT(floats(doubled), ElementsAre(2, 6, 10, 4, 8, 12));
  EXPECT_THAT(floats(sums), ElementsAre(3, 7, 11));
}

TEST(VmapTest, SharedResultsAndTrees) {
  auto f = [](std::vector<Tensor> xs, Tensor w) { return std::tuple(xs[0] + xs[1], w * 2.0f); };
  const Tensor x = vector({1, 2, 3}), w = vector({5});
  auto [sums, shared] = vmap(f, {0, std::nullopt})(std::vector{x, x}, w);
  EXPECT_THAT(floats(sums), ElementsAre(2, 4, 6));
  EXPECT_THAT(floats(shared), ElementsAre(10, 10, 10));
  auto [again, once] = vmap(f, {0, std::nullopt}, {0, std::nullopt})(std::vector{x, x}, w);
  EXPECT_THAT(floats(once), ElementsAre(10));
}

TEST(VmapTest, NestsAndInsideJit) {
  auto product = [](Tensor a, Tensor b) { return a * b; };
  auto outer = vmap(vmap(product, {std::nullopt, 0}), {0, std::nullopt});
  const Tensor a = vector({1, 2}), b = vector({3, 4, 5});
  EXPECT_THAT(floats(outer(a, b)), ElementsAre(3, 4, 5, 6, 8, 10));
  EXPECT_THAT(floats(jit(outer)(a, b)), ElementsAre(3, 4, 5, 6, 8, 10));
}

TEST(VmapTest, AnOuterGradientSeesWhatStopsIt) {
  const Tensor x = Tensor::from_host(std::vector<float>{1, 2, 3}, {3});
  auto loss = [&](const Tensor& y) {
    return ops::sum(vmap([&](const Tensor& each) { return stop_gradient(each * y) * y; })(x));
  };
  EXPECT_EQ(grad(loss)(Tensor::scalar(2)).item<float>(), 12);  // sum(x) * 2, not twice that
}

TEST(VmapTest, PerExampleGradients) {
  Parameter weights(matrix({1, -1, 2, 0.5, 0.25, 3}, 2), "w");
  auto loss = [](Tensor w, Tensor x, Tensor label) {
    const Tensor logits = ops::matmul(ops::reshape(ops::tanh(x), {1, 2}), w);
    return ops::sum(ops::softmax_cross_entropy(logits, ops::reshape(label, {1})));
  };
  const Tensor x = matrix({1, 2, -1, 0.5, 0.3, 0.2}, 3);
  const Tensor labels = Tensor::from_host<int32_t>({0, 2, 1}, {3});
  const Tensor together = vmap(grad(loss), {std::nullopt, 0, 0})(weights, x, labels);
  EXPECT_EQ(together.shape(), (Shape{3, 2, 3}));
  std::vector<Tensor> apart;
  for (int64_t i = 0; i < 3; ++i) {
    apart.push_back(grad(loss)(weights.value(), ops::reshape(ops::slice(x, {i, 0}, {1, 2}), {2}),
                               ops::reshape(ops::slice(labels, {i}, {1}), {})));
  }
  EXPECT_EQ(difference(to_array(together), to_array(ops::stack(apart)), 1e-5, 1e-6), "");
  // Their sum is the gradient of the sum.
  auto total = [&](Tensor all) {
    return ops::sum(vmap(loss, {std::nullopt, 0, 0})(all, x, labels));
  };
  EXPECT_EQ(difference(to_array(grad(total)(weights.value())), to_array(ops::sum(together, {0})),
                       1e-5, 1e-6),
            "");
}

TEST(VmapTest, OfJvpAndJvpOfIt) {
  auto f = [](Tensor x) { return ops::sum(x * x * x); };
  const Tensor x = matrix({1, 2, 3, 4}, 2), v = matrix({1, 0, 0, 1}, 2);
  auto slope = [&](Tensor at, Tensor along) { return jvp(f, at, along).second; };
  EXPECT_THAT(floats(vmap(slope)(x, v)), ElementsAre(3, 48));
  EXPECT_THAT(floats(jvp(vmap(f), x, v).second), ElementsAre(3, 48));
  auto product = [&](Tensor at, Tensor along) { return hvp(f, at, along); };
  EXPECT_THAT(floats(vmap(product)(x, v)), ElementsAre(6, 0, 0, 24));
}

// Heads share the mask of their sequence, examples share all masks.
TEST(VmapTest, AttentionWithASharedPaddingMask) {
  const Tensor x = ops::reshape(ops::sin(ops::arange(0, 2 * 2 * 3 * 4 * 8)), {2, 2, 3, 4, 8});
  const Tensor mask = ops::reshape(ops::less(ops::arange(0, 8), 7), {2, 1, 1, 4});
  auto attend = [&](Tensor q) { return ops::scaled_dot_product_attention(q, q, q, mask); };
  auto slope = grad([&](Tensor q) { return ops::sum(ops::square(attend(q))); });
  const Tensor all = vmap(attend)(x), slopes = vmap(slope)(x);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(floats(part(all, i)), floats(attend(part(x, i))));
    EXPECT_EQ(floats(part(slopes, i)), floats(slope(part(x, i))));
  }
}

TEST(VmapTest, EmptyBatch) {
  auto f = [](Tensor x) { return ops::sum(x, {0}); };
  EXPECT_EQ(vmap(f)(Tensor::zeros({0, 4})).shape(), (Shape{0}));
}

// Each example has its own numbers, and the generator goes on after all of them.
TEST(VmapTest, GeneratorsGiveEachExampleItsOwn) {
  auto draw = [](Generator& generator) {
    return [&generator](Tensor x) {
      const Tensor first = ops::random_uniform({5}, 0, 1, generator);
      return std::pair(x + first, ops::random_uniform({2}, 0, 1, generator));
    };
  };
  Generator generator(7), loop(7);
  auto [first, second] = vmap(draw(generator))(Tensor::zeros({3}));
  std::vector<Tensor> rows;
  for (int i = 0; i < 3; ++i) rows.push_back(ops::random_uniform({5}, 0, 1, loop));
  EXPECT_EQ(floats(first), floats(ops::stack(rows)));
  rows.clear();
  for (int i = 0; i < 3; ++i) rows.push_back(ops::random_uniform({2}, 0, 1, loop));
  EXPECT_EQ(floats(second), floats(ops::stack(rows)));
  EXPECT_EQ(generator.state().to_host<int64_t>(), loop.state().to_host<int64_t>());
}

// In a scan, a cond or a scan in a scan too: an example's part is all that it may draw there.
TEST(VmapTest, ControlFlowGivesEachExampleItsOwn) {
  Generator generator(7), loop(7);
  auto walk = [](Generator& from) {
    return [&from](Tensor x) {
      return scan(
          [&](Tensor c, Tensor step) {
            c = c + ops::random_uniform({2}, 0, 1, from);
            c = fori_loop(
                0, 2,
                [&](Tensor, Tensor d) { return d * ops::sum(ops::random_normal({5}, 0, 1, from)); },
                c);
            return std::pair(c, c * step);
          },
          ops::broadcast_to(x, {2}), Tensor::on_host<float>({1, 2, 3}, {3}));
    };
  };
  const Tensor xs = Tensor::on_host<float>({1, 2}, {2});
  auto [ends, paths] = vmap(walk(generator))(xs);
  for (int i = 0; i < 2; ++i) {
    auto [end, path] = walk(loop)(part(xs, i));
    EXPECT_EQ(floats(part(ends, i)), floats(end));
    EXPECT_EQ(floats(part(paths, i)), floats(path));
  }
  EXPECT_EQ(generator.state().to_host<int64_t>(), loop.state().to_host<int64_t>());
}

TEST(VmapTest, BranchesDrawFromTheirExamplesPart) {
  Generator generator(5);
  auto f = [&](Tensor x) {
    return cond(
        ops::less(x, 0), [&] { return ops::random_uniform({9}, 0, 1, generator); },
        [&] { return ops::broadcast_to(ops::random_uniform({1}, 0, 1, generator), {9}); });
  };
  const auto state = generator.state().to_host<int64_t>();
  const Tensor drawn = vmap(f)(Tensor::on_host<float>({-1, 1, -2}, {3}));
  for (int64_t i = 0; i < 3; ++i) {
    const Tensor key = Tensor::on_host<int64_t>({state[0], state[1] + 3 * i}, {2});
    const Tensor own = i == 1 ? ops::broadcast_to(ops::random_uniform(key, {1}), {9})
                              : ops::random_uniform(key, {9});
    EXPECT_EQ(floats(part(drawn, i)), floats(own)) << i;
  }
  EXPECT_EQ(generator.state().to_host<int64_t>(), (std::vector<int64_t>{state[0], state[1] + 9}));
}

// What the backward pass draws again is what the forward pass drew.
TEST(VmapTest, GradientsThroughScansThatDraw) {
  Generator generator(9), loop(9);
  auto f = [](Generator& from) {
    return [&from](Tensor x) {
      auto step = [&](Tensor c, Tensor) {
        c = ops::sin(c) * ops::random_uniform({3}, 0, 1, from);
        return std::pair(c * ops::random_uniform({3}, 0, 1, from), c);
      };
      auto [end, path] = scan(step, x, Tensor::zeros({4}));
      return ops::sum(end) + ops::sum(path * path);
    };
  };
  const Tensor xs = Tensor::on_host<float>({1, 2, 3, -1, -2, -3}, {2, 3});
  auto [values, gradients] = vmap(value_and_grad(f(generator)))(xs);
  for (int i = 0; i < 2; ++i) {
    auto [value, gradient] = value_and_grad(f(loop))(part(xs, i));
    EXPECT_EQ(floats(part(values, i)), floats(value));
    EXPECT_EQ(floats(part(gradients, i)), floats(gradient));
  }
}

TEST(VmapTest, DropoutMasksDifferByExampleAndMatchTheirGradients) {
  Generator generator(3);
  auto f = [&](Tensor x) { return ops::sum(ops::dropout(x, 0.5, generator)); };
  const Tensor x = Tensor::ones({8, 64});
  auto [values, gradients] = vmap(value_and_grad(f))(x);
  EXPECT_EQ(floats(values), floats(ops::sum(gradients, {1})));
  const std::vector<float> all = floats(gradients);
  for (size_t i = 1; i < 8; ++i) {
    EXPECT_FALSE(std::equal(all.begin(), all.begin() + 64, all.begin() + 64 * i));
  }
}

TEST(JacobianTest, BothDirections) {
  auto f = [](Tensor x, Tensor w) { return std::pair(ops::matmul(w, x), ops::sum(x * x)); };
  const Tensor x = vector({1, 2, 3}), w = matrix({1, 2, 3, 4, 5, 6}, 2);
  auto check = [&](auto jacobian) {
    auto [matrix_part, row] = jacobian(x, w);
    EXPECT_EQ(matrix_part.shape(), (Shape{2, 3}));
    EXPECT_THAT(floats(matrix_part), ElementsAre(1, 2, 3, 4, 5, 6));
    EXPECT_THAT(floats(row), ElementsAre(2, 4, 6));
  };
  check(jacfwd(f));
  check(jacrev(f));
  check(jit(jacrev(f)));
  EXPECT_EQ(jacfwd(f, 1)(x, w).first.shape(), (Shape{2, 2, 3}));
  EXPECT_EQ(floats(jacfwd(f, 1)(x, w).first), floats(jacrev(f, 1)(x, w).first));
}

TEST(JacobianTest, HessianAndItsProducts) {
  auto f = [](Tensor x) { return ops::sum(x * x * x) + ops::reduce_prod(x); };
  const Tensor x = vector({1, 2, 3}), v = vector({1, -1, 2});
  const Tensor second = hessian(f)(x);
  EXPECT_EQ(second.shape(), (Shape{3, 3}));
  EXPECT_THAT(floats(second),
              testing::Pointwise(testing::FloatNear(1e-5f), {6, 3, 2, 3, 12, 1, 2, 1, 18}));
  EXPECT_THAT(floats(hvp(f, x, v)), testing::Pointwise(testing::FloatNear(1e-5f), {7, -7, 37}));
  auto g = [](Tensor a, Tensor b) { return ops::sum(a * b * b); };
  auto [da, db] = hvp(g, std::tuple(x, v), std::tuple(v, x));
  EXPECT_THAT(floats(da), ElementsAre(2, -4, 12));
  EXPECT_THAT(floats(db), ElementsAre(4, 10, 26));
}

}  // namespace
}  // namespace ballast::tests
