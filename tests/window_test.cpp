// What the frontend makes of pooling and convolution: windows beyond the padding, windows of
// adaptive pooling, and one axis instead of two, against plain loops in double.
#include "frontend/ballast_frontend.h"
#include "tests/reference_ops.h"
#include "tests/samples.h"
#include "tests/support/parts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

namespace ballast::tests {
namespace {

// Of an axis: where windows begin, the first one -before.
struct Axis {
  int64_t extent, kernel, stride, before, after, dilation;

  int64_t covered() const { return (kernel - 1) * dilation + 1; }
  // As many windows as see all of the padded axis, but none that begins behind x.
  std::vector<int64_t> ceil_begins() const {
    std::vector<int64_t> begins = {-before};
    while (begins.back() + covered() < extent + after && begins.back() + stride < extent) {
      begins.push_back(begins.back() + stride);
    }
    return begins;
  }
};

struct Pool {
  Shape x;
  std::vector<int64_t> kernel, stride, padding, dilation;

  Axis axis(size_t d) const {
    return {x[2 + d], kernel[d], stride[d], padding[2 * d], padding[2 * d + 1], dilation[d]};
  }
  ops::Window2d window() const { return {stride, "pad", padding, dilation, /*ceil_mode=*/true}; }
};

struct Seen {
  std::vector<size_t> elements;
  int64_t padded = 0;  // elements and padding, without what lies beyond it
};

Shape result_of(const Pool& pool) {
  return {pool.x[0], pool.x[1], static_cast<int64_t>(pool.axis(0).ceil_begins().size()),
          static_cast<int64_t>(pool.axis(1).ceil_begins().size())};
}

// The windows in the order of the results.
std::vector<Seen> windows_of(const Pool& pool) {
  std::vector<Seen> windows;
  const Axis down = pool.axis(0), across = pool.axis(1);
  const Shape shape = result_of(pool);
  const auto total = static_cast<size_t>(TensorType{DType::kF32, shape}.elements());
  for (size_t i = 0; i < total; ++i) {
    const Index at = index_of(i, shape);
    const int64_t top = down.ceil_begins()[static_cast<size_t>(at[2])],
                  left = across.ceil_begins()[static_cast<size_t>(at[3])];
    Seen seen;
    for (int64_t row = top; row < top + down.covered(); row += down.dilation) {
      for (int64_t column = left; column < left + across.covered(); column += across.dilation) {
        const bool is_beyond =
            row >= down.extent + down.after || column >= across.extent + across.after;
        seen.padded += is_beyond ? 0 : 1;
        if (row < 0 || row >= down.extent || column < 0 || column >= across.extent) continue;
        seen.elements.push_back(flat_of({at[0], at[1], row, column}, pool.x));
      }
    }
    windows.push_back(seen);
  }
  return windows;
}

Parts largest_of(const std::vector<size_t>& elements, const HostArray& x) {
  return {{*std::max_element(elements.begin(), elements.end(),
                             [&](size_t a, size_t b) { return x.values[a] < x.values[b]; }),
           1.0}};
}

Parts mean_of(const std::vector<size_t>& elements, int64_t divisor) {
  Parts parts;
  for (size_t at : elements) parts.emplace_back(at, 1 / static_cast<double>(divisor));
  return parts;
}

const std::vector<int64_t> kOne = {1, 1}, kNone = {0, 0, 0, 0};
const std::vector<Pool> kPools = {
    // The last window half beyond x, exactly at its end, and, begun in the padding, left out.
    {{1, 2, 5, 4}, {2, 2}, {2, 2}, kNone, kOne},
    {{1, 1, 5, 5}, {3, 3}, {2, 2}, kNone, kOne},
    {{2, 1, 4, 6}, {2, 3}, {3, 2}, {1, 1, 1, 1}, kOne},
    {{1, 2, 6, 7}, {3, 3}, {2, 2}, {1, 1, 1, 1}, kOne},
    {{1, 1, 7, 5}, {3, 2}, {3, 3}, {0, 2, 1, 0}, kOne},
    {{1, 1, 2, 9}, {1, 4}, {5, 3}, {0, 0, 2, 1}, kOne},
    // A window larger than x, and one that steps over elements.
    {{1, 1, 2, 3}, {3, 3}, {2, 3}, kNone, kOne},
    {{1, 1, 7, 4}, {1, 1}, {4, 3}, kNone, kOne},
};

TEST(CeilModeTest, MaximaOfWindowsThatReachBeyondThePadding) {
  std::vector<Pool> pools = kPools;
  pools.push_back({{1, 2, 7, 6}, {2, 3}, {2, 2}, {1, 0, 1, 1}, {2, 1}});
  for (const Pool& pool : pools) {
    SCOPED_TRACE(to_string(pool.x) + to_string(pool.kernel) + to_string(pool.stride));
    const HostArray x = real(pool.x, -1, 1);
    std::vector<Parts> results;
    for (const Seen& seen : windows_of(pool)) results.push_back(largest_of(seen.elements, x));
    const auto call = [&](const Tensor& t) {
      return ops::max_pool2d(t, pool.kernel, pool.window());
    };
    expect_parts(call, x, result_of(pool), results);
  }
}

TEST(CeilModeTest, MeansCountNothingBeyondThePadding) {
  for (const Pool& pool : kPools) {
    for (bool counts_padding : {true, false}) {
      for (DType dtype : {DType::kF32, DType::kBF16}) {
        SCOPED_TRACE(to_string(pool.x) + to_string(pool.kernel) + to_string(pool.stride));
        HostArray x = real(pool.x, -1, 1);
        x.type.dtype = dtype;
        for (double& value : x.values) value = rounded(value, dtype);
        std::vector<Parts> results;
        for (const Seen& seen : windows_of(pool)) {
          const auto inside = static_cast<int64_t>(seen.elements.size());
          results.push_back(mean_of(seen.elements, counts_padding ? seen.padded : inside));
        }
        const auto call = [&](const Tensor& t) {
          return ops::avg_pool2d(t, pool.kernel, pool.window(), counts_padding);
        };
        expect_parts(call, x, result_of(pool), results);
      }
    }
  }
}

// Extents as PyTorch gives them: floor and ceil of (in + 2 padding - kernel) / stride, plus 1.
TEST(CeilModeTest, ExtentsAreThoseOfPyTorch) {
  const auto extent = [](int64_t in, int64_t kernel, int64_t stride, int64_t padding, bool ceils) {
    const Tensor x = Tensor::zeros({1, 1, in});
    return ops::max_pool1d(x, kernel, {stride, "pad", {padding}, 1, ceils}).shape()[2];
  };
  EXPECT_EQ(extent(6, 3, 2, 0, true), 3);
  EXPECT_EQ(extent(112, 3, 2, 0, true), 56);
  EXPECT_EQ(extent(5, 2, 2, 1, true), 3);
  EXPECT_THROW(extent(1, 3, 2, 0, true), Error);
  EXPECT_EQ(nn::MaxPool2d(3, 2, "valid", 0, 1, true)(Tensor::zeros({1, 1, 6, 7})).shape(),
            (Shape{1, 1, 3, 3}));
  // "same" makes ceil(extent / stride) windows anyway.
  const Tensor row = Tensor::ones({1, 1, 1, 7});
  for (bool ceils : {false, true}) {
    EXPECT_EQ(ops::max_pool2d(row, {1, 2}, {{1, 3}, "same", {0}, {1}, ceils}).shape(),
              (Shape{1, 1, 1, 3}));
  }
  EXPECT_EQ(nn::AvgPool2d({1, 3}, {1, 3}, "valid", 0, true, true)(row).to_host<float>(),
            (std::vector<float>{1, 1, 1}));
}

// The elements of x in window i of `count` of adaptive pooling.
std::pair<int64_t, int64_t> adaptive_window(int64_t i, int64_t extent, int64_t count) {
  const double share = static_cast<double>(extent) / static_cast<double>(count);
  return {static_cast<int64_t>(std::floor(static_cast<double>(i) * share + 1e-9)),
          static_cast<int64_t>(std::ceil(static_cast<double>(i + 1) * share - 1e-9))};
}

TEST(AdaptivePoolTest, MaximaAndMeans) {
  for (const auto& [x_shape, output] :
       std::vector<std::pair<Shape, std::vector<int64_t>>>{{{1, 2, 5, 5}, {3, 3}},
                                                           {{2, 1, 4, 7}, {2, 3}},
                                                           {{1, 1, 3, 4}, {1, 1}},
                                                           {{1, 2, 2, 3}, {5, 3}},
                                                           {{1, 2, 4, 5}, {-1, 2}},
                                                           {{1, 2, 4, 5}, {3, -1}},
                                                           {{1, 1, 6, 4}, {3, 2}}}) {
    SCOPED_TRACE(to_string(x_shape) + to_string(output));
    const HostArray x = real(x_shape, -1, 1);
    const Shape shape = {x_shape[0], x_shape[1], output[0] < 0 ? x_shape[2] : output[0],
                         output[1] < 0 ? x_shape[3] : output[1]};
    std::vector<Parts> maxima, means;
    for (size_t i = 0; i < static_cast<size_t>(TensorType{DType::kF32, shape}.elements()); ++i) {
      const Index at = index_of(i, shape);
      const auto [top, bottom] = adaptive_window(at[2], x_shape[2], shape[2]);
      const auto [left, right] = adaptive_window(at[3], x_shape[3], shape[3]);
      std::vector<size_t> elements;
      for (int64_t row = top; row < bottom; ++row) {
        for (int64_t column = left; column < right; ++column) {
          elements.push_back(flat_of({at[0], at[1], row, column}, x_shape));
        }
      }
      maxima.push_back(largest_of(elements, x));
      means.push_back(mean_of(elements, static_cast<int64_t>(elements.size())));
    }
    const std::vector<int64_t> size = output;  // a part of a pair cannot be captured
    expect_parts([&](const Tensor& t) { return ops::adaptive_max_pool2d(t, size); }, x, shape,
                 maxima);
    expect_parts([&](const Tensor& t) { return ops::adaptive_avg_pool2d(t, size); }, x, shape,
                 means);
  }
}

// The first of equals gets the gradient, and a NaN wins, also where windows overlap.
TEST(AdaptivePoolTest, EqualElementsAndNaN) {
  const Tensor ties = Tensor::zeros({1, 1, 1, 5});
  const auto total = [](Tensor t) { return ops::sum(ops::adaptive_max_pool2d(t, {1, 3})); };
  EXPECT_EQ(grad(total)(ties).to_host<float>(), (std::vector<float>{1, 1, 0, 1, 0}));
  const Tensor x = Tensor::from_host<float>({NAN, 0, 1, 2, -INFINITY}, {1, 1, 1, 5});
  const std::vector<float> y = nn::AdaptiveMaxPool2d({1, 3})(x).to_host<float>();
  EXPECT_TRUE(std::isnan(y[0]));
  EXPECT_EQ(y[1], 2);
  EXPECT_EQ(y[2], 2);
  EXPECT_EQ(nn::AdaptiveAvgPool2d({1, 1})(Tensor::ones({1, 1, 2, 3})).item<float>(), 1);
}

// To sizes that do not divide: the windows overlap, and each sees its own elements only.
TEST(AdaptivePoolTest, WindowsOverlap) {
  std::vector<float> plane(25);
  for (size_t i = 0; i < plane.size(); ++i) plane[i] = static_cast<float>(i);
  const Tensor x = Tensor::from_host(plane, {1, 1, 5, 5});
  const std::vector<float> means = {3, 4.5f, 6, 10.5f, 12, 13.5f, 18, 19.5f, 21};
  EXPECT_EQ(ops::adaptive_avg_pool2d(x, {3, 3}).to_host<float>(), means);
  for (DType narrow : {DType::kBF16, DType::kF16}) {
    const Tensor pooled = ops::adaptive_avg_pool2d(ops::cast(x, narrow), {3, 3});
    EXPECT_EQ(pooled.dtype(), narrow);
    EXPECT_EQ(pooled.to_host<float>(), means);
  }
  auto f = [](Tensor t) { return ops::sum(ops::adaptive_avg_pool2d(t, {3, 5})); };
  const std::vector<float> shares = grad(f)(x).to_host<float>();
  EXPECT_NEAR(shares[0], 0.5, 1e-6);
  EXPECT_NEAR(shares[5], 0.5 + 1.0 / 3, 1e-6);
  plane[24] = INFINITY;
  std::vector<float> far = means;
  far[8] = INFINITY;
  EXPECT_EQ(
      ops::adaptive_avg_pool2d(Tensor::from_host(plane, {1, 1, 5, 5}), {3, 3}).to_host<float>(),
      far);
}

// ---- one axis

TEST(LineTest, PoolsAlongTheLastAxis) {
  for (bool counts_padding : {true, false}) {
    const Pool pool{{2, 2, 1, 8}, {1, 3}, {1, 3}, {0, 0, 1, 1}, kOne};
    const ops::Window1d window{3, "pad", {1}, 1, /*ceil_mode=*/true};
    const Shape lines = {2, 2, 8};
    const HostArray x = real(lines, -1, 1);
    Shape shape = result_of(pool);
    shape.erase(shape.begin() + 2);
    std::vector<Parts> maxima, means;
    for (const Seen& seen : windows_of(pool)) {
      maxima.push_back(largest_of(seen.elements, x));
      const auto inside = static_cast<int64_t>(seen.elements.size());
      means.push_back(mean_of(seen.elements, counts_padding ? seen.padded : inside));
    }
    expect_parts([&](const Tensor& t) { return ops::max_pool1d(t, 3, window); }, x, shape, maxima);
    expect_parts([&](const Tensor& t) { return ops::avg_pool1d(t, 3, window, counts_padding); }, x,
                 shape, means);
    const Tensor in = to_tensor(x);
    EXPECT_EQ(nn::MaxPool1d(3, 3, "pad", 1, 1, true)(in).to_host<float>(),
              ops::max_pool1d(in, 3, window).to_host<float>());
    EXPECT_EQ(nn::AvgPool1d(3, 3, "pad", 1, counts_padding, true)(in).to_host<float>(),
              ops::avg_pool1d(in, 3, window, counts_padding).to_host<float>());
  }
}

// y[n][o][i] = bias[o] + sum over the group's channels c and taps k of w[o][c][k] times the element
// that tap k of window i sees; as parts of x, and with x held still as parts of w.
TEST(LineTest, ConvolvesAlongTheLastAxis) {
  const Axis axis{9, 3, 2, 1, 2, 2};
  constexpr int64_t kGroups = 2, kIn = 4, kOut = 2;
  const HostArray x = real({2, kIn, axis.extent}, -1, 1),
                  w = real({kOut, kIn / kGroups, axis.kernel}, -1, 1);
  const int64_t windows =
      (axis.extent + axis.before + axis.after - axis.covered()) / axis.stride + 1;
  const Shape shape = {2, kOut, windows};
  std::vector<Parts> of_x, of_w;
  for (size_t i = 0; i < static_cast<size_t>(TensorType{DType::kF32, shape}.elements()); ++i) {
    const Index at = index_of(i, shape);
    of_x.emplace_back(), of_w.emplace_back();
    for (int64_t c = 0; c < kIn / kGroups; ++c) {
      for (int64_t k = 0; k < axis.kernel; ++k) {
        const int64_t column = at[2] * axis.stride - axis.before + k * axis.dilation;
        if (column < 0 || column >= axis.extent) continue;
        const int64_t channel = at[1] / (kOut / kGroups) * (kIn / kGroups) + c;
        const size_t in = flat_of({at[0], channel, column}, x.type.shape),
                     weight = flat_of({at[1], c, k}, w.type.shape);
        of_x.back().emplace_back(in, w.values[weight]);
        of_w.back().emplace_back(weight, x.values[in]);
      }
    }
  }
  const ops::Window1d window{axis.stride, "pad", {axis.before, axis.after}, axis.dilation};
  const Tensor input = to_tensor(x), weights = to_tensor(w);
  expect_parts([&](const Tensor& t) { return ops::conv1d(t, weights, window, kGroups); }, x, shape,
               of_x);
  expect_parts([&](const Tensor& t) { return ops::conv1d(input, t, window, kGroups); }, w, shape,
               of_w);
  const Tensor bias = Tensor::from_host<float>({1, -2}, {2});
  const Tensor added = ops::conv1d(input, weights, bias, window, kGroups) -
                       ops::conv1d(input, weights, window, kGroups);
  const std::vector<float> biases = added.to_host<float>();
  for (size_t i = 0; i < biases.size(); ++i) {
    EXPECT_NEAR(biases[i], index_of(i, shape)[1] == 0 ? 1 : -2, 1e-6);
  }
}

// ---- convolution backwards

struct Transposed {
  Shape x;  // [N, C, H, W]
  int64_t out_channels, groups;
  Axis down, across;  // of the result
  std::vector<int64_t> output_padding;
};

// The element at i of the result gets x at j times tap k wherever window j of the result sees i at
// tap k; as parts of x, and with x held still as parts of w [C, O / groups, KH, KW].
void expect_transposed(const Transposed& c) {
  const HostArray x = real(c.x, -1, 1),
                  w = real({c.x[1], c.out_channels / c.groups, c.down.kernel, c.across.kernel}, -1,
                           1);
  const Shape shape = {c.x[0], c.out_channels, c.down.extent, c.across.extent};
  const auto total = static_cast<size_t>(TensorType{DType::kF32, shape}.elements());
  std::vector<Parts> of_x(total), of_w(total);
  for (size_t i = 0; i < x.values.size(); ++i) {
    const Index from = index_of(i, c.x);
    const int64_t group = from[1] / (c.x[1] / c.groups);
    for (size_t tap = 0; tap < w.values.size(); ++tap) {
      const Index k = index_of(tap, w.type.shape);
      const int64_t row = from[2] * c.down.stride - c.down.before + k[2] * c.down.dilation,
                    column = from[3] * c.across.stride - c.across.before + k[3] * c.across.dilation;
      if (k[0] != from[1] || row < 0 || row >= shape[2] || column < 0 || column >= shape[3]) {
        continue;
      }
      const int64_t channel = group * (c.out_channels / c.groups) + k[1];
      const size_t to = flat_of({from[0], channel, row, column}, shape);
      of_x[to].emplace_back(i, w.values[tap]);
      of_w[to].emplace_back(tap, x.values[i]);
    }
  }
  const ops::Window2d window{{c.down.stride, c.across.stride},
                             "pad",
                             {c.down.before, c.down.after, c.across.before, c.across.after},
                             {c.down.dilation, c.across.dilation}};
  const Tensor input = to_tensor(x), weights = to_tensor(w);
  const auto call = [&](const Tensor& a, const Tensor& b) {
    return ops::conv2d_transpose(a, b, window, c.groups, c.output_padding);
  };
  expect_parts([&](const Tensor& t) { return call(t, weights); }, x, shape, of_x);
  expect_parts([&](const Tensor& t) { return call(input, t); }, w, shape, of_w);
}

TEST(TransposedConvolutionTest, IsTheTransposeOfItsDefinition) {
  // Extents: (H - 1) stride + covered - before - after + output_padding.
  expect_transposed({{1, 2, 3, 2}, 3, 1, {7, 3, 2, 0, 0, 1}, {3, 2, 1, 0, 0, 1}, {0}});
  expect_transposed({{2, 2, 3, 3}, 2, 2, {6, 3, 2, 1, 1, 1}, {8, 3, 3, 1, 1, 1}, {1, 1}});
  expect_transposed({{1, 4, 2, 3}, 2, 2, {5, 2, 3, 0, 1, 2}, {8, 3, 2, 2, 0, 2}, {0, 1}});
}

TEST(TransposedConvolutionTest, InvertsExtentsAndAddsBiases) {
  const Tensor x = Tensor::ones({1, 2, 4, 5});
  nn::Conv2dTranspose same(2, 3, 3, 2);
  EXPECT_EQ(same.weight().shape(), (Shape{2, 3, 3, 3}));
  EXPECT_EQ(same(x).shape(), (Shape{1, 3, 8, 10}));
  nn::Conv2dTranspose biased(2, 3, {2, 1}, {2, 1}, "valid", 0, 0, 1, 1, true, nn::Zero(),
                             nn::Constant(0.5));
  const Tensor y = biased(x);
  EXPECT_EQ(y.shape(), (Shape{1, 3, 8, 5}));
  EXPECT_EQ(y.to_host<float>(), std::vector<float>(120, 0.5f));
}

// Traced, what these are made of names the line of the call.
TEST(LineTest, NamesTheLineOfTheCall) {
  const auto all = [](const std::vector<Tensor>& in) {
    const ops::Window2d planes{{2}, "pad", {1}, {1}, /*ceil_mode=*/true};
    const ops::Window1d lines{2, "pad", {1}, 1, /*ceil_mode=*/true};
    return std::vector<Tensor>{
        ops::avg_pool2d(in[0], {3}, planes),     ops::max_pool2d(in[0], {3}, planes),
        ops::adaptive_max_pool2d(in[0], {3, 2}), ops::avg_pool1d(in[1], 3, lines),
        ops::max_pool1d(in[1], 3, lines),        ops::conv1d(in[1], in[1])};
  };
  const Program program = trace(all, {{DType::kF32, {1, 2, 4, 4}}, {DType::kF32, {2, 2, 4}}});
  for (const Equation& equation : program.equations) {
    EXPECT_STREQ(equation.where.file, __FILE__) << equation.primitive;
  }
}

}  // namespace
}  // namespace ballast::tests
