#include "kernels/conv/winograd/conv_winograd.h"
#include "kernels/conv/conv_problem.h"
#include "kernels/conv/conv_reference.h"
#include "kernels/conv/winograd/conv_winograd_deep.h"
#include "kernels/conv/winograd/conv_winograd_weight.h"
#include "kernels/plan/registers.h"
#include "kernels/recipe/lanes.h"

#include <array>

namespace ballast::kernels::testing {
namespace {

// What Winograd's algorithm adds up, all parts taken positive: magnitudes of B' d B, G w G' and A
// dy A', of a tile's elements, and of G' m G. Rows are elements along one dimension.
using Matrix = std::vector<std::vector<double>>;
struct Magnitudes {
  WinogradForm numbers;
  Matrix spread, filter, gather;
};
const Magnitudes kDense{kWinogradDense,
                        {{1, 0, 1, 0}, {0, 1, 1, 0}, {0, 1, 1, 0}, {0, 1, 0, 1}},
                        {{1, 0, 0}, {0.5, 0.5, 0.5}, {0.5, 0.5, 0.5}, {0, 0, 1}},
                        {{1, 0}, {1, 1}, {1, 1}, {0, 1}}};
const Matrix kFilterApart{{1, 0, 0}, {1, 0, 1}, {0, 0, 1}, {0, 1, 0}, {0, 1, 0}};
const Magnitudes kApart{
    kWinogradApart,
    {{1, 0, 1, 0, 0}, {0, 0, 1, 0, 0}, {0, 0, 1, 0, 1}, {0, 1, 0, 0, 0}, {0, 0, 0, 1, 0}},
    kFilterApart,
    {{1, 0}, {1, 1}, {0, 1}, {1, 0}, {0, 1}}};
const Magnitudes kBetweenOdd{
    kWinogradBetweenOdd,
    {{1, 1, 0}, {0, 1, 0}, {0, 1, 1}, {1, 0, 0}, {0, 1, 0}},
    kFilterApart,
    {{0, 1, 0, 0}, {0, 1, 0, 1}, {0, 0, 0, 1}, {1, 0, 0, 0}, {0, 0, 1, 0}}};
const Magnitudes kBetweenEven{
    kWinogradBetweenEven,
    {{1, 1, 0}, {0, 1, 0}, {0, 1, 1}, {0, 1, 0}, {0, 0, 1}},
    kFilterApart,
    {{1, 0, 0, 0}, {1, 0, 1, 0}, {0, 0, 1, 0}, {0, 1, 0, 0}, {0, 0, 0, 1}}};

const Matrix kFilterFours{{1, 0, 0, 0}, {1, 0, 1, 0}, {0, 0, 1, 0},
                          {0, 1, 0, 0}, {0, 1, 0, 1}, {0, 0, 0, 1}};
const Magnitudes kFours{kWinogradFours,
                        {{1, 0, 1, 0, 0, 0},
                         {0, 0, 1, 0, 0, 0},
                         {0, 0, 1, 0, 1, 0},
                         {0, 1, 0, 1, 0, 0},
                         {0, 0, 0, 1, 0, 0},
                         {0, 0, 0, 1, 0, 1}},
                        kFilterFours,
                        {{1, 0}, {1, 1}, {0, 1}, {1, 0}, {1, 1}, {0, 1}}};
const Magnitudes kBetweenFours{
    kWinogradBetweenFours,
    {{1, 1, 0, 0}, {0, 1, 0, 0}, {0, 1, 1, 0}, {0, 1, 1, 0}, {0, 0, 1, 0}, {0, 0, 1, 1}},
    kFilterFours,
    {{1, 0, 0, 0}, {1, 0, 1, 0}, {0, 0, 1, 0}, {0, 1, 0, 0}, {0, 1, 0, 1}, {0, 0, 0, 1}}};
const Magnitudes kFives{kWinogradFives,
                        {{1, 0, 1, 0, 0, 0},
                         {0, 1, 1, 0, 0, 0},
                         {0, 1, 1, 0, 0, 0},
                         {0, 1, 0, 1, 0, 0},
                         {0, 0, 0, 1, 1, 0},
                         {0, 0, 0, 0, 1, 0},
                         {0, 0, 0, 0, 1, 1}},
                        {{1, 0, 0, 0, 0},
                         {0.5, 0.5, 0.5, 0, 0},
                         {0.5, 0.5, 0.5, 0, 0},
                         {0, 0, 1, 0, 0},
                         {0, 0, 0, 1, 0},
                         {0, 0, 0, 1, 1},
                         {0, 0, 0, 0, 1}},
                        {{1, 0}, {1, 1}, {1, 1}, {0, 1}, {1, 0}, {1, 1}, {0, 1}}};

// All of a transform of at(row, column), row by row.
using Elements = std::vector<double>;
template <class At>
Elements transformed(const Matrix& rows, const At& at) {
  Elements elements;
  for (const auto& down : rows) {
    for (const auto& across : rows) {
      double sum = 0;
      for (size_t a = 0; a < down.size(); ++a) {
        for (size_t b = 0; b < across.size(); ++b) {
          if (down[a] != 0 && across[b] != 0) sum += down[a] * across[b] * at(a, b);
        }
      }
      elements.push_back(sum);
    }
  }
  return elements;
}

// |value| of element (row, column) of plane `which`, 0 outside of it.
double inside(const std::vector<float>& values, int64_t which, int64_t height, int64_t width,
              int64_t row, int64_t column) {
  if (row < 0 || row >= height || column < 0 || column >= width) return 0;
  return std::fabs(values[(which * height + row) * width + column]);
}

// By element of y (or of dx, of dy and the flipped window); and whether the tile's input, or its
// window, has what is not finite.
struct OfTiles {
  std::vector<double> magnitude;
  std::vector<bool> may_be_nan;
};

OfTiles of_tiles(const Magnitudes& form, const ConvProblem& p, const std::vector<float>& x,
                 const std::vector<float>& w) {
  const int64_t results = form.numbers.results, step = form.numbers.step;
  std::vector<Elements> windows, tiles;  // of all inputs, next to each other
  for (int64_t at = 0; at < p.groups * p.outputs * p.inputs; ++at) {
    const int64_t first = at / p.inputs / p.outputs * p.group_step +
                          at / p.inputs % p.outputs * p.out_step + at % p.inputs * p.in_step +
                          p.first_tap;
    windows.push_back(transformed(form.filter, [&](int64_t i, int64_t j) {
      return std::fabs(w[first + (i * p.kernel_w + j) * p.tap_step]);
    }));
  }
  const int64_t down = ceil_div(p.out_h, results), across = ceil_div(p.out_w, results);
  for (int64_t at = 0; at < p.batch * p.groups * down * across; ++at) {
    const int64_t top = at / across % down * step - p.top, left = at % across * step - p.left;
    for (int64_t c = 0; c < p.inputs; ++c) {
      const int64_t plane = at / across / down * p.inputs + c;
      tiles.push_back(transformed(form.spread, [&](int64_t i, int64_t j) {
        return inside(x, plane, p.in_h, p.in_w, top + i, left + j);
      }));
    }
  }
  // By a result's row and column in its tile, the elements that it is made of.
  const int64_t side = int64_t(form.gather.size());
  std::vector<std::vector<int64_t>> parts(results * results);
  for (int64_t at = 0; at < results * results * side * side; ++at) {
    const int64_t element = at % (side * side), which = at / (side * side);
    if (form.gather[element / side][which / results] != 0 &&
        form.gather[element % side][which % results] != 0) {
      parts[which].push_back(element);
    }
  }
  OfTiles result;
  for (int64_t at = 0; at < p.batch * p.groups * p.outputs * p.out_h * p.out_w; ++at) {
    const int64_t column = at % p.out_w, row = at / p.out_w % p.out_h,
                  o = at / p.out_w / p.out_h % p.outputs,
                  sample = at / p.out_w / p.out_h / p.outputs;
    const Elements* tile =
        &tiles[((sample * down + row / results) * across + column / results) * p.inputs];
    const Elements* window = &windows[(sample % p.groups * p.outputs + o) * p.inputs];
    double sum = 0;
    for (int64_t c = 0; c < p.inputs; ++c) {
      for (int64_t e : parts[row % results * results + column % results]) {
        sum += tile[c][e] * window[c][e];
      }
    }
    result.magnitude.push_back(sum);
    result.may_be_nan.push_back(!std::isfinite(sum));
  }
  return result;
}

const Magnitudes& form_of(const ConvConfig& c) {
  return c.kernel_h == 5 ? kFives : c.kernel_h == 4 ? kFours : c.stride_h == 1 ? kDense : kApart;
}
const Magnitudes& form_of_input_grad(const ConvConfig& c) {
  return c.stride_h == 1   ? form_of(c)
         : c.kernel_h == 4 ? kBetweenFours
         : c.top % 2 == 1  ? kBetweenOdd
                           : kBetweenEven;
}

// The same by element of dw.
std::vector<double> magnitude_of_weights(const ConvConfig& c, const std::vector<float>& dy,
                                         const std::vector<float>& x) {
  const int64_t inputs = c.in_channels / c.groups, outputs = c.out_channels / c.groups;
  const Magnitudes& form = form_of(c);
  const int64_t step = form.numbers.step, window = form.numbers.window;
  const int64_t down = ceil_div(c.out_h(), 2), across = ceil_div(c.out_w(), 2);
  // All tiles of a plane of x or dy, which begin `apart` from each other, the first at (-top,
  // -left).
  const auto tiles_of = [&](const Matrix& rows, const std::vector<float>& values, int64_t plane,
                            int64_t height, int64_t width, int64_t apart, int64_t top,
                            int64_t left) {
    std::vector<Elements> tiles;
    for (int64_t tile = 0; tile < down * across; ++tile) {
      const int64_t row = tile / across * apart - top, column = tile % across * apart - left;
      tiles.push_back(transformed(rows, [&](int64_t i, int64_t j) {
        return inside(values, plane, height, width, row + i, column + j);
      }));
    }
    return tiles;
  };
  std::vector<std::vector<Elements>> spread, gradients;  // by plane
  for (int64_t plane = 0; plane < c.batch * c.in_channels; ++plane) {
    spread.push_back(tiles_of(form.spread, x, plane, c.height, c.width, step, c.top, c.left));
  }
  for (int64_t plane = 0; plane < c.batch * c.out_channels; ++plane) {
    gradients.push_back(tiles_of(form.gather, dy, plane, c.out_h(), c.out_w(), 2, 0, 0));
  }
  std::vector<double> result;
  for (int64_t at = 0; at < c.out_channels * inputs; ++at) {
    const int64_t o = at / inputs, from = o / outputs * inputs + at % inputs;
    Elements elements(form.numbers.elements());
    for (int64_t n = 0; n < c.batch; ++n) {
      for (int64_t tile = 0; tile < down * across; ++tile) {
        const Elements &input = spread[n * c.in_channels + from][tile],
                       &gradient = gradients[n * c.out_channels + o][tile];
        for (size_t e = 0; e < elements.size(); ++e) elements[e] += input[e] * gradient[e];
      }
    }
    for (int64_t tap = 0; tap < window * window; ++tap) {
      const size_t side = form.filter.size();
      double sum = 0;
      for (size_t e = 0; e < elements.size(); ++e) {
        sum +=
            form.filter[e / side][tap / window] * form.filter[e % side][tap % window] * elements[e];
      }
      result.push_back(sum);
    }
  }
  return result;
}

// Numbers of very different sizes, so that a tile's may be far larger than a window's.
HostTensor uneven_f32(const Shape& shape, int seed) {
  std::vector<float> values = random_f32(shape, seed).as<float>();
  for (size_t i = 0; i < values.size(); ++i) values[i] = std::ldexp(values[i], i * 7 % 23 - 11);
  return f32(shape, values);
}

bool fits_deep(const ConvProblem& p) { return std::isfinite(winograd_deep_cycles(p)); }

// y, dx and dw by Winograd's algorithm, whoever else would compute them faster; y and dx in both
// ways where both can.
void check_winograd(const ConvConfig& c,
                    const std::vector<int64_t>& registers = {vector_register_bytes()}) {
  const HostTensor x = uneven_f32(x_shape(c), 1), w = uneven_f32(w_shape(c), 2),
                   dy = uneven_f32(y_shape(c), 3);
  const auto xv = x.as<float>(), wv = w.as<float>(), dyv = dy.as<float>();
  const AllTotals totals(c, xv, wv, dyv);
  const ConvProblem forward = forward_problem(c);
  ConvProblem backward = input_grad_problem(c);
  if (c.stride_h == 2) {
    backward.top = c.kernel_h == 4 || c.top == 0, backward.left = c.kernel_h == 4 || c.left == 0;
  }
  const auto of_y = of_tiles(form_of(c), forward, xv, wv).magnitude,
             of_dx = of_tiles(form_of_input_grad(c), backward, dyv, wv).magnitude,
             of_dw = magnitude_of_weights(c, dyv, xv);
  for (int64_t which : registers) {
    const RegistersScope scope(which);
    const auto check_y = [&](const Plan& plan, const char* what) {
      expect_near(run_plan(plan, {x, w}, dy.type).as<float>(), totals.y.value, of_y,
                  c.in_channels / c.groups + 8, what + name_of(c));
    };
    const auto check_dx = [&](const Plan& plan, const char* what) {
      expect_near(run_plan(plan, {dy, w}, x.type).as<float>(), totals.dx.value, of_dx,
                  c.out_channels / c.groups + 8, what + name_of(c));
    };
    check_y(plan_conv2d_winograd(c, {}), "y of ");
    check_dx(plan_conv2d_input_grad_winograd(c), "dx of ");
    const bool is_dense = &form_of(c) == &kDense;
    if (is_dense && fits_deep(forward)) check_y(plan_winograd_deep(forward, {}), "deep y of ");
    if (is_dense && fits_deep(backward)) check_dx(plan_winograd_deep(backward, {}), "deep dx of ");
    expect_near(run_plan(plan_conv2d_weight_grad_winograd(c), {dy, x}, w.type).as<float>(),
                totals.dw.value, of_dw, c.batch * c.out_h() * c.out_w() / 4 + 16,
                "dw of " + name_of(c));
  }
}

TEST(ConvWinograd, Small) {
  if (!runs_cpu_class()) GTEST_SKIP() << "kernels of CPUs";
  check_winograd(make({1, 64, 2, 8}, 32, 3, 1, 1));
  check_winograd(make({1, 32, 3, 9}, 32, 3, 1, 1));   // an odd row and column
  check_winograd(make({1, 64, 5, 4}, 64, 3, 1, 1));   // both ways
  check_winograd(make({1, 32, 7, 17}, 32, 3, 2, 1));  // with a stride
  check_winograd(make({1, 32, 4, 7}, 32, 5, 1, 2));   // windows of 5x5
}

TEST(ConvWinogradLarge, ChannelsAndRows) {
  if (!runs_cpu_class()) GTEST_SKIP() << "kernels of CPUs";
  const auto check = [](const ConvConfig& c) { check_winograd(c, tested_registers()); };
  check(make({2, 65, 3, 17}, 67, 3, 1, 1));   // channels that fill no tile
  check(make({1, 33, 7, 6}, 64, 3, 1, 2));    // rows shorter than a vector
  check(make({1, 48, 5, 40}, 96, 3, 1, 0));   // no padding, many to dx
  check(make({1, 130, 3, 8}, 130, 3, 1, 1));  // channels in chunks
  check(make({2, 64, 4, 18}, 128, 3, 1, 1, 1, 2));
  check(make({11, 32, 7, 7}, 64, 3, 1, 1));   // blocks of samples, the last moves back
  check(make({11, 66, 7, 7}, 80, 3, 1, 1));   // likewise, of windows too
  check(make({3, 260, 4, 5}, 65, 3, 1, 1));   // chunks whose last block lies before them
  check(make({2, 64, 29, 33}, 64, 3, 1, 1));  // of rows of a plane, the last has fewer
  check(make({2, 65, 11, 37}, 67, 3, 2, 0));  // with strides, of channels that fill no tile
  check(make({3, 40, 14, 15}, 64, 3, 2, 1));
  check(make({2, 64, 9, 80}, 128, 3, 2, 2, 1, 2));
  check(make({3, 64, 7, 7}, 64, 3, 2, 1));  // blocks of samples
  check(make({2, 33, 9, 19}, 64, 5, 1, 2));
  check(make({2, 33, 12, 22}, 64, 4, 2, 1));
  check(make({3, 64, 8, 6}, 67, 5, 1, 1));
  for (int64_t stride : {1, 2}) {
    ConvConfig lopsided = make({1, 32, 8, 21}, 32, 3, stride);
    lopsided.top = stride, lopsided.right = 2;
    check(lopsided);
  }
}

TEST(ConvWinogradLarge, IsTakenWhereItIsFaster) {
  for (int64_t registers : {kWideRegisters, kNarrowRegisters}) {
    const RegistersScope scope(registers);
    EXPECT_TRUE(is_winograd(make({8, 64, 56, 56}, 64, 3, 1, 1)));
    EXPECT_TRUE(is_winograd_input_grad(make({8, 64, 56, 56}, 64, 3, 1, 1)));
    EXPECT_TRUE(is_winograd_weight_grad(make({8, 64, 56, 56}, 64, 3, 1, 1)));
    EXPECT_TRUE(is_winograd(make({8, 512, 7, 7}, 512, 3, 1, 1)));
    EXPECT_TRUE(is_winograd(make({1, 512, 7, 7}, 512, 3, 1, 1)));
    EXPECT_TRUE(is_winograd_input_grad(make({1, 256, 14, 14}, 256, 3, 1, 1)));
    // Of narrow tiles the direct sums are as fast.
    EXPECT_EQ(is_winograd_weight_grad(make({8, 64, 27, 27}, 64, 5, 1, 2)), has_wide_registers());
    EXPECT_EQ(is_winograd_weight_grad(make({8, 512, 7, 7}, 512, 3, 1, 1)), has_wide_registers());
    EXPECT_FALSE(is_winograd_weight_grad(make({8, 64, 3, 5}, 64, 3, 1, 1)));  // less than a vector
    // With strides less is saved: units that do twice as many multiply-adds do without.
    for (bool taken : {is_winograd(make({8, 64, 56, 56}, 128, 3, 2, 1)),
                       is_winograd_input_grad(make({8, 64, 56, 56}, 128, 3, 2, 1)),
                       is_winograd_input_grad(make({8, 64, 57, 57}, 128, 3, 2, 0))}) {
      EXPECT_EQ(taken, !has_wide_units());
    }
    EXPECT_FALSE(is_winograd(make({8, 256, 14, 14}, 512, 3, 2, 1)));  // a seventh and more is empty
    EXPECT_FALSE(is_winograd(make({8, 64, 56, 56}, 64, 3, 3, 1)));
    EXPECT_FALSE(is_winograd(make({8, 64, 56, 56}, 64, 3, 1, 1, 2)));
    EXPECT_TRUE(is_winograd(make({8, 64, 14, 14}, 64, 5, 1, 2)));
    EXPECT_TRUE(is_winograd(make({8, 64, 32, 32}, 128, 4, 2, 1)));
    EXPECT_TRUE(is_winograd_input_grad(make({8, 64, 32, 32}, 128, 4, 2, 1)));
    EXPECT_FALSE(is_winograd_input_grad(make({8, 64, 32, 32}, 128, 4, 2, 0)));
    EXPECT_TRUE(is_winograd_input_grad(make({8, 64, 14, 14}, 64, 5, 1, 2)));
    EXPECT_FALSE(is_winograd(make({8, 64, 56, 56}, 64, 5, 2, 2)));
    EXPECT_FALSE(is_winograd(make({8, 64, 56, 56}, 64, 7, 1, 3)));
    EXPECT_FALSE(is_winograd(make({8, 3, 56, 56}, 64, 3, 1, 1)));
    EXPECT_FALSE(is_winograd(make({8, 64, 3, 3}, 64, 3, 1, 1)));  // one tile and a half
  }
}
// What is not finite reaches its windows' results, and of others those of the same tiles at most.
TEST(ConvWinogradLarge, WhatIsNotFiniteStaysInItsTiles) {
  if (!runs_cpu_class()) GTEST_SKIP() << "kernels of CPUs";
  const ConvConfig all[] = {make({1, 32, 10, 20}, 32, 3, 1, 1), make({1, 32, 10, 20}, 32, 3, 2, 1),
                            make({1, 32, 10, 20}, 32, 5, 1, 2)};
  for (int at = 0; at < 6; ++at) {
    const ConvConfig& c = all[at / 2];
    const int which = at % 2;
    std::vector<std::vector<float>> operands = {random_f32(x_shape(c), 1).as<float>(),
                                                random_f32(w_shape(c), 2).as<float>()};
    std::vector<float>& marked = operands[which];
    marked[marked.size() / 2] = INFINITY;
    marked[marked.size() - 1] = NAN;
    const std::vector<float>&x = operands[0], &w = operands[1];
    Marked y(elements_of(y_shape(c)));
    for_each_product(c, [&](int64_t at_x, int64_t at_w, int64_t at_y) {
      y.value[at_y] += double{x[at_x]} * w[at_w];
    });
    y.may_be_nan = of_tiles(form_of(c), forward_problem(c), x, w).may_be_nan;
    const auto got = run_plan(plan_conv2d_winograd(c, {}), {f32(x_shape(c), x), f32(w_shape(c), w)},
                              TensorType{DType::kF32, y_shape(c)});
    expect_marks(got.as<float>(), y, fmt::format("{} operand {}", name_of(c), which));
  }
}

}  // namespace
}  // namespace ballast::kernels::testing
