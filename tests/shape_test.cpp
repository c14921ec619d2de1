// The frontend's functions over slices, joins and picks: what they add to the ops is Python's and
// numpy's rules, checked here against values written down or computed by plain loops.
#include "frontend/ballast_frontend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

namespace ballast::tests {
namespace {

using Values = std::vector<float>;
using Ints = std::vector<int32_t>;

Tensor counted(const Shape& shape) {
  Values values(static_cast<size_t>(TensorType{DType::kF32, shape}.elements()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  return Tensor::from_host(values, shape);
}

void expect(const Tensor& got, const Shape& shape, const Values& values) {
  EXPECT_EQ(got.shape(), shape);
  EXPECT_EQ(got.to_host<float>(), values);
}

// Python's own definition of range(*slice(begin, end, stride).indices(extent)).
Values python_slice(int64_t begin, int64_t end, int64_t stride, int64_t extent) {
  const auto bound = [&](int64_t value, int64_t if_none) {
    if (value == ops::kNone) return if_none;
    if (value < 0) value += extent;
    if (value < 0) return int64_t{stride > 0 ? 0 : -1};
    if (value >= extent) return stride > 0 ? extent : extent - 1;
    return value;
  };
  Values values;
  const int64_t last = bound(end, stride > 0 ? extent : -1);
  for (int64_t i = bound(begin, stride > 0 ? 0 : extent - 1); stride > 0 ? i < last : i > last;
       i += stride) {
    values.push_back(static_cast<float>(i));
  }
  return values;
}

TEST(ShapeOps, StridedSliceFollowsPython) {
  const Tensor x = counted({7});
  for (int64_t begin : {ops::kNone, int64_t{0}, int64_t{2}, int64_t{9}, int64_t{-3}, int64_t{-9}}) {
    for (int64_t end : {ops::kNone, int64_t{0}, int64_t{5}, int64_t{9}, int64_t{-1}, int64_t{-9}}) {
      for (int64_t stride : {1, 3, -1, -2}) {
        EXPECT_EQ(ops::strided_slice(x, {begin}, {end}, {stride}).to_host<float>(),
                  python_slice(begin, end, stride, 7))
            << begin << ":" << end << ":" << stride;
      }
    }
  }
  expect(ops::strided_slice(counted({2, 3}), {1}, {2}), {1, 3}, {3, 4, 5});
  expect(ops::slice(counted({2, 3}), {0, 1}, {-1, 2}), {2, 2}, {1, 2, 4, 5});
}

TEST(ShapeOps, JoinsAndParts) {
  const Tensor x = counted({2, 3});
  const std::vector<Tensor> columns = ops::split(x, 3, -1);
  ASSERT_EQ(columns.size(), 3u);
  expect(columns[1], {2, 1}, {1, 4});
  expect(ops::split(counted({40}), 40)[39], {1}, {39});
  expect(ops::concat(columns, 1), {2, 3}, {0, 1, 2, 3, 4, 5});
  expect(ops::stack({x, x}, -1), {2, 3, 2}, {0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5});
  expect(ops::stack({x, x}), {2, 2, 3}, {0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5});
}

TEST(ShapeOps, RepeatedAndReordered) {
  const Tensor x = counted({2, 3});
  expect(ops::tile(x, {2}), {2, 6}, {0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5});
  expect(ops::tile(counted({2}), {2, 1}), {2, 2}, {0, 1, 0, 1});
  expect(ops::repeat(x, 2, 1), {2, 6}, {0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5});
  expect(ops::repeat(x, 2, -2), {4, 3}, {0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5});
  expect(ops::flip(x), {2, 3}, {5, 4, 3, 2, 1, 0});
  expect(ops::flip(x, {-1}), {2, 3}, {2, 1, 0, 5, 4, 3});
  expect(ops::roll(x, 1, 1), {2, 3}, {2, 0, 1, 5, 3, 4});
  expect(ops::roll(x, -4, 1), {2, 3}, {1, 2, 0, 4, 5, 3});
  expect(ops::roll(x, 6, 0), {2, 3}, {0, 1, 2, 3, 4, 5});
  EXPECT_EQ(ops::expand_dims(x, -1).shape(), (Shape{2, 3, 1}));
  EXPECT_EQ(ops::squeeze(ops::reshape(x, {1, 2, 1, 3})).shape(), (Shape{2, 3}));
  EXPECT_EQ(ops::squeeze(ops::reshape(x, {1, 2, 1, 3}), {-2}).shape(), (Shape{1, 2, 3}));
}

TEST(ShapeOps, Padding) {
  const Tensor x = counted({4});
  expect(ops::pad(x, {{1, 2}}, 9), {7}, {9, 0, 1, 2, 3, 9, 9});
  expect(ops::pad(x, {{2, 1}}, 0, "edge"), {7}, {0, 0, 0, 1, 2, 3, 3});
  expect(ops::pad(x, {{3, 2}}, 0, "reflect"), {9}, {3, 2, 1, 0, 1, 2, 3, 2, 1});
  expect(ops::pad(counted({2, 2}), {{1, 0}, {0, 1}}, 0, "reflect"), {3, 3},
         {2, 3, 2, 0, 1, 0, 2, 3, 2});
  expect(ops::pad(x, {{4, 2}}, 0, "symmetric"), {10}, {3, 2, 1, 0, 0, 1, 2, 3, 3, 2});
  expect(ops::pad(x, {{3, 4}}, 0, "wrap"), {11}, {1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3});
  expect(ops::pad(counted({2, 2}), {{1, 0}, {0, 2}}, 0, "wrap"), {3, 4},
         {2, 3, 2, 3, 0, 1, 0, 1, 2, 3, 2, 3});
}

TEST(ShapeOps, Makers) {
  const Tensor x = counted({2, 3});
  expect(ops::zeros_like(x), {2, 3}, Values(6, 0));
  expect(ops::full_like(x, 2.5), {2, 3}, Values(6, 2.5));
  expect(ops::arange(1, 2, 0.3), {4}, {1, 1.3f, 1.6f, 1 + 3 * 0.3f});
  EXPECT_EQ(ops::arange(5, 0, -2, DType::kI32).to_host<int32_t>(), (Ints{5, 3, 1}));
  EXPECT_EQ(ops::arange(3, 3).shape(), Shape{0});
  expect(ops::tril(counted({3, 3})), {3, 3}, {0, 0, 0, 3, 4, 0, 6, 7, 8});
  expect(ops::triu(counted({2, 3}), 1), {2, 3}, {0, 1, 2, 0, 0, 5});
  expect(ops::tril(counted({2, 3}), -1), {2, 3}, {0, 0, 0, 3, 0, 0});
}

TEST(IndexOps, Picks) {
  const Tensor x = counted({2, 3});
  const Tensor picks = Tensor::from_host<int32_t>({2, -1, 5}, {3});
  expect(ops::take(x, picks), {3}, {2, 5, 5});
  expect(ops::take(x, picks, 1), {2, 3}, {2, 2, 0, 5, 5, 0});
  expect(ops::index_select(x, 0, Tensor::from_host<int32_t>({1}, {1})), {1, 3}, {3, 4, 5});
  const Tensor places = Tensor::from_host<int32_t>({1, 2, 0, -1, -2, 0, 0, 3}, {4, 2});
  expect(ops::gather_nd(x, places), {4}, {5, 2, 0, 0});
  expect(ops::gather_nd(x, Tensor::from_host<int32_t>({1, 2}, {2, 1})), {2, 3}, {3, 4, 5, 0, 0, 0});
  expect(ops::masked_fill(x, ops::greater(x, 3.0f), -1), {2, 3}, {0, 1, 2, 3, -1, -1});
  expect(ops::one_hot(Tensor::from_host<int32_t>({1, -1}, {2}), 2), {2, 2}, {0, 1, 0, 0});
}

TEST(IndexOps, EmbeddingGradientSumsRowsButNotThePadding) {
  const Tensor picks = Tensor::from_host<int32_t>({1, 0, 1, -1}, {2, 2});
  const auto loss = [&](Tensor table) { return ops::sum(ops::embedding(table, picks, 2)); };
  expect(grad(loss)(counted({3, 2})), {3, 2}, {1, 1, 2, 2, 0, 0});
}

template <class Call>
std::string message_of(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// What is out of range is refused with the number that was given.
TEST(ShapeOps, AxesBeforeTheFirst) {
  const Tensor x = counted({2, 3}), picks = Tensor::from_host<int32_t>({1}, {1});
  const std::vector<std::function<void()>> calls = {
      [&] { ops::reduce_sum(x, {-3}); },
      [&] {
        ops::reduce_max(x, {0, -3});
      },
      [&] { grad([](Tensor t) { return ops::sum(ops::reduce_sum(t, {-3})); })(x); },
      [&] { ops::argmax(x, -3); },
      [&] { ops::cumsum(x, -3); },
      [&] { ops::softmax(x, -3); },
      [&] { ops::log_softmax(x, -3); },
      [&] {
        ops::concat({x, x}, -3);
      },
      [&] {
        ops::split(x, {1, 1}, -3);
      },
      [&] { ops::flip(x, {-3}); },
      [&] { ops::gather(x, picks, -3); },
      [&] { ops::index_add(x, picks, x, -3); },
      [&] { ops::one_hot(picks, 2, 1, 0, -3); },
      [&] {
        ops::transpose(x, {0, -3});
      },
      [&] { ops::repeat(x, 2, -3); },
  };
  for (size_t i = 0; i < calls.size(); ++i) {
    EXPECT_THAT(message_of(calls[i]), testing::HasSubstr("-3")) << "call " << i;
  }
}

TEST(ShapeOps, RepetitionsThatThereAreNot) {
  const Tensor x = counted({2, 3});
  EXPECT_THAT(message_of([&] { ops::repeat(x, 2, 2); }),
              testing::HasSubstr("[repeat] axis 2 is out of range for rank 2"));
  EXPECT_THAT(message_of([&] { ops::repeat(Tensor::scalar(1), 2, -1); }),
              testing::HasSubstr("[repeat] axis -1 is out of range for rank 0"));
  EXPECT_THAT(message_of([&] { ops::repeat(x, -1, 0); }),
              testing::HasSubstr("[repeat] -1 repetitions, expected at least 0"));
  EXPECT_THAT(message_of([&] { ops::tile(x, {-2}); }),
              testing::HasSubstr("[tile] -2 repetitions, expected at least 0"));
}

TEST(ShapeOps, GradientsOfComposites) {
  const Tensor x = counted({4});
  const auto weighted = [](const Tensor& y) {
    return ops::sum(y * ops::arange(0, static_cast<double>(y.elements())));
  };
  const auto padded = [&](Tensor t) { return weighted(ops::pad(t, {{2, 1}}, 0, "edge")); };
  expect(grad(padded)(x), {4}, {0 + 1 + 2, 3, 4, 5 + 6});
  const auto rolled = [&](Tensor t) { return weighted(ops::roll(t, 1, 0)); };
  expect(grad(rolled)(x), {4}, {1, 2, 3, 0});
  const auto part = [&](Tensor t) { return weighted(ops::split(t, 2, 0)[1]); };
  expect(grad(part)(x), {4}, {0, 0, 0, 1});
}

}  // namespace
}  // namespace ballast::tests
