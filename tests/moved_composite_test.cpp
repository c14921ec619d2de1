// Composites of the frontend that are not elementwise, against plain loops in double: moves of
// elements, statistics along axes, and the loss that picks by label.
#include "frontend/ballast_frontend.h"
#include "tests/reference_ops.h"
#include "tests/samples.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>

namespace ballast::tests {
namespace {

const auto kName = [](const auto& row) { return row.param.name; };

double total(const HostArray& array) {
  return std::accumulate(array.values.begin(), array.values.end(), 0.0);
}

// Labels from -1 to C, which cost nothing beyond the ends.
TEST(NllTest, IsTheNegativeElementOfTheLabel) {
  for (const Shape& shape :
       std::vector<Shape>{{1, 1},   {1, 2},    {2, 1},    {3, 4},   {7, 7},  {5, 3},   {31, 17},
                          {64, 10}, {1, 1000}, {0, 5},    {13, 2},  {2, 37}, {17, 1},  {257, 3},
                          {9, 33},  {33, 9},   {100, 11}, {3, 129}, {4, 64}, {11, 101}}) {
    const int64_t classes = shape[1];
    const HostArray x = real(shape, -5, 0);
    HostArray labels = whole({shape[0]}, classes + 2);
    for (double& label : labels.values) label -= 1;
    HostArray expected{{DType::kF32, {shape[0]}}, {}}, slopes{x.type, Elements(x.values.size())};
    const double rows = static_cast<double>(shape[0]);
    for (size_t row = 0; row < labels.values.size(); ++row) {
      const auto label = static_cast<int64_t>(labels.values[row]);
      const bool is_class = label >= 0 && label < classes;
      const size_t at =
          row * static_cast<size_t>(classes) + static_cast<size_t>(is_class ? label : 0);
      expected.values.push_back(is_class ? -x.values[at] : 0);
      if (is_class) slopes.values[at] = -1 / rows;
    }
    SCOPED_TRACE(to_string(shape));
    const Tensor in = to_tensor(x), picks = to_tensor(labels);
    EXPECT_EQ(difference(to_array(ops::nll_loss(in, picks, "none")), expected, 0, 0), "");
    const HostArray sum{{DType::kF32, {}}, {total(expected)}};
    const HostArray mean{{DType::kF32, {}}, {total(expected) / rows}};
    EXPECT_EQ(difference(to_array(ops::nll_loss(in, picks, "sum")), sum, 1e-6, 1e-6), "");
    EXPECT_EQ(difference(to_array(ops::nll_loss(in, picks)), mean, 1e-6, 1e-6), "");
    if (shape[0] == 0) continue;
    const auto loss = [&](Tensor t) { return ops::nll_loss(t, picks); };
    EXPECT_EQ(difference(to_array(grad(loss)(in)), slopes, 1e-6, 0), "");
  }
}

// A NaN or an infinity counts where it is the label's, and only there.
TEST(NllTest, OfNaNAndInfinity) {
  HostArray x = special();
  x.type.shape = {5, 2};
  HostArray labels = whole({5}, 2);
  for (int64_t label : {0, 1}) {
    HostArray expected{{DType::kF32, {5}}, {}};
    for (size_t row = 0; row < 5; ++row) {
      labels.values[row] = static_cast<double>(label);
      expected.values.push_back(-x.values[2 * row + static_cast<size_t>(label)]);
    }
    const Tensor got = ops::nll_loss(to_tensor(x), to_tensor(labels), "none");
    EXPECT_EQ(difference(to_array(got), expected, 0, 0), "");
  }
}

// Moves elements: every element of the result is one of x, or 0.
struct Move {
  std::string name;
  size_t min_rank;
  std::function<Tensor(const Tensor&)> call;
  std::function<Shape(const Shape&)> result;
  std::function<std::optional<Index>(const Index& at, const Shape& x)> source;
};

const Elements kPicks = {1, -1, 0, 5, -2, 1, -40};

// numpy.pad of the last axis by as many elements as the mode has before it, and half as many
// behind. `image`: which element of an axis of this extent stands at a place outside of it.
Move padding(const std::string& mode, int64_t spared,
             const std::function<int64_t(int64_t at, int64_t extent)>& image) {
  const auto before = [=](const Shape& x) { return std::max<int64_t>(x.back() - spared, 0); };
  return {"pad_" + mode, 1,
          [=](auto& x) {
            ops::Paddings paddings(x.shape().size());
            paddings.back() = {before(x.shape()), before(x.shape()) / 2};
            return ops::pad(x, paddings, 0, mode);
          },
          [=](Shape x) {
            x.back() += before(x) + before(x) / 2;
            return x;
          },
          [=](Index at, auto& x) {
            at.back() -= before(x);
            const bool is_inside = at.back() >= 0 && at.back() < x.back();
            if (!is_inside) at.back() = image(at.back(), x.back());
            return std::optional(at);
          }};
}

std::vector<Move> moves() {
  const auto same = [](const Shape& x) { return x; };
  const auto tiled = [](Shape x, Shape times) {
    if (times.size() > x.size()) x.insert(x.begin(), times.size() - x.size(), 1);
    for (size_t i = 1; i <= times.size(); ++i) x[x.size() - i] *= times[times.size() - i];
    return x;
  };
  const auto repeats = [](const Index& at, const Shape& x) {
    Index from(at.end() - static_cast<int64_t>(x.size()), at.end());
    for (size_t d = 0; d < x.size(); ++d) from[d] %= x[d];
    return std::optional(from);
  };
  const auto band = [](bool is_lower, int64_t k) {
    return [=](const Index& at, const Shape&) {
      const int64_t above = at[at.size() - 1] - at[at.size() - 2];
      return (is_lower ? above <= k : above >= k) ? std::optional(at) : std::nullopt;
    };
  };
  return {
      {"tile_last", 1, [](auto& x) { return ops::tile(x, {3}); },
       [=](auto& x) { return tiled(x, {3}); }, repeats},
      {"tile_beyond_rank", 0,
       [](auto& x) {
         return ops::tile(x, {2, 1, 1, 3});
       },
       [=](auto& x) {
         return tiled(x, {2, 1, 1, 3});
       },
       repeats},
      {"tile_to_nothing", 1, [](auto& x) { return ops::tile(x, {0}); },
       [=](auto& x) { return tiled(x, {0}); }, repeats},
      {"repeat", 1, [](auto& x) { return ops::repeat(x, 3, 0); },
       [](Shape x) {
         x[0] *= 3;
         return x;
       },
       [](Index at, auto&) {
         at[0] /= 3;
         return std::optional(at);
       }},
      {"roll", 1, [](auto& x) { return ops::roll(x, -4, -1); }, same,
       [](Index at, auto& x) {
         at.back() = (at.back() + 4) % x.back();
         return std::optional(at);
       }},
      {"index_select", 1,
       [](auto& x) {
         return ops::index_select(x, -1, to_tensor({{DType::kI32, {7}}, kPicks}));
       },
       [](Shape x) {
         x.back() = 7;
         return x;
       },
       [](Index at, auto& x) -> std::optional<Index> {
         at.back() = static_cast<int64_t>(kPicks[static_cast<size_t>(at.back())]);
         if (at.back() < 0) at.back() += x.back();
         if (at.back() < 0 || at.back() >= x.back()) return std::nullopt;
         return at;
       }},
      padding("reflect", 1,
              [](int64_t at, int64_t extent) { return at < 0 ? -at : 2 * extent - 2 - at; }),
      padding("symmetric", 0,
              [](int64_t at, int64_t extent) { return at < 0 ? -at - 1 : 2 * extent - 1 - at; }),
      padding("wrap", 0, [](int64_t at, int64_t extent) { return (at + extent) % extent; }),
      {"tril", 2, [](auto& x) { return ops::tril(x, 1); }, same, band(true, 1)},
      {"triu", 2, [](auto& x) { return ops::triu(x, -1); }, same, band(false, -1)},
  };
}

class MoveTest : public testing::TestWithParam<Move> {};

// Values, bit for bit, and as gradients what comes to each element.
TEST_P(MoveTest, TakesEveryElementFromItsPlace) {
  const Move& move = GetParam();
  for (const Shape& shape : std::vector<Shape>{{},           {1},
                                               {2},          {7},
                                               {31},         {257},
                                               {1, 1},       {3, 5},
                                               {5, 3},       {17, 1},
                                               {1, 17},      {0},
                                               {3, 0},       {0, 4},
                                               {2, 3, 4},    {1, 5, 1},
                                               {13, 11},     {2, 3, 17},
                                               {3, 1, 2, 5}, {2, 64},
                                               {33, 65},     {2, 1, 3, 1, 2, 2, 1, 3}}) {
    if (shape.size() < move.min_rank) continue;
    for (DType dtype : {DType::kF32, DType::kBF16, DType::kI32}) {
      HostArray x = whole(shape, 99, dtype), expected{{dtype, move.result(shape)}, {}};
      if (is_float(dtype) && !x.values.empty()) x.values.back() = kNaN;
      HostArray weights = whole(expected.type.shape, 5, DType::kF32);
      HostArray slopes{{dtype, shape}, Elements(x.values.size())};
      for (size_t i = 0; i < weights.values.size(); ++i) {
        const auto from = move.source(index_of(i, expected.type.shape), shape);
        expected.values.push_back(from ? x.values[flat_of(*from, shape)] : 0);
        if (from) slopes.values[flat_of(*from, shape)] += weights.values[i];
      }
      SCOPED_TRACE(to_string(x.type));
      EXPECT_EQ(difference(to_array(move.call(to_tensor(x))), expected, 0, 0), "");
      if (dtype != DType::kF32) continue;
      const auto weighted = [&](Tensor t) { return ops::sum(move.call(t) * to_tensor(weights)); };
      EXPECT_EQ(difference(to_array(grad(weighted)(to_tensor(x))), slopes, 0, 0), "");
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, MoveTest, testing::ValuesIn(moves()), kName);

struct Statistic {
  std::string name;
  std::function<Tensor(const Tensor&, const ops::Axes&, bool keep_dims)> call;
  std::function<double(const Elements&)> value;
};

double variance(const Elements& e, double ddof) {
  const double n = static_cast<double>(e.size());
  double mean = 0, squares = 0;
  for (double x : e) mean += x / n;
  for (double x : e) squares += (x - mean) * (x - mean);
  return squares / std::max(n - ddof, 0.0);
}

double log_sum_exp(const Elements& e) {
  const double top = *std::max_element(e.begin(), e.end());
  double sum = 0;
  for (double x : e) sum += std::exp(x - top);
  return std::isinf(top) ? top : top + std::log(sum);
}

class StatisticTest : public testing::TestWithParam<Statistic> {};

// Along the last axis or all; of narrow floats they are f32's, rounded once.
TEST_P(StatisticTest, OnManyShapes) {
  for (const Shape& shape :
       std::vector<Shape>{{2},     {3},     {7},      {31},         {257},     {1, 2},   {3, 5},
                          {5, 3},  {17, 2}, {1, 17},  {2, 3, 4},    {4, 5, 2}, {13, 11}, {2, 3, 17},
                          {2, 64}, {0, 4},  {33, 65}, {3, 1, 2, 5}, {4, 129},  {2, 1000}}) {
    for (bool is_last : {false, true}) {
      if (shape[0] == 0 && !is_last) continue;
      for (DType dtype : {DType::kF32, DType::kBF16}) {
        HostArray x = real(shape, -4, 4);
        x.type.dtype = dtype;
        for (double& value : x.values) value = rounded(value, dtype);
        const auto length = static_cast<size_t>(is_last ? shape.back() : x.type.elements());
        HostArray expected{{dtype, Shape(is_last ? shape.size() : 0, 1)}, {}};
        if (is_last) std::copy(shape.begin(), shape.end() - 1, expected.type.shape.begin());
        for (auto at = x.values.begin(); at != x.values.end(); at += static_cast<int64_t>(length)) {
          expected.values.push_back(
              GetParam().value(Elements(at, at + static_cast<int64_t>(length))));
        }
        const ops::Axes axes = is_last ? ops::Axes{-1} : ops::Axes{};
        const Tensor got = GetParam().call(to_tensor(x), axes, is_last);
        const double part = 1e-5 + (dtype == DType::kBF16 ? 0x1p-8 : 0);
        EXPECT_EQ(difference(to_array(got), expected, part, 1e-6), "") << to_string(x.type);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, StatisticTest,
    testing::Values(
        Statistic{"variance",
                  [](auto& x, auto& axes, bool keep) { return ops::reduce_var(x, axes, 0, keep); },
                  [](auto& e) { return variance(e, 0); }},
        Statistic{"deviation",
                  [](auto& x, auto& axes, bool keep) { return ops::reduce_std(x, axes, 1, keep); },
                  [](auto& e) { return std::sqrt(variance(e, 1)); }},
        Statistic{"logsumexp",
                  [](auto& x, auto& axes, bool keep) { return ops::logsumexp(x, axes, keep); },
                  log_sum_exp}),
    kName);

}  // namespace
}  // namespace ballast::tests
