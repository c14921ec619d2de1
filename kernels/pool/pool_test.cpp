#include "kernels/plan/registers.h"
#include "kernels/test_support.h"

namespace ballast::kernels::testing {
namespace {

Shape x_shape(const PoolConfig& c) { return {c.planes, c.height, c.width}; }
Shape y_shape(const PoolConfig& c) { return {c.planes, c.out_h(), c.out_w()}; }

// Calls f(offset in y, offsets in x of the window's elements in row-major order).
template <class F>
void for_each_window(const PoolConfig& c, const F& f) {
  int64_t at_y = 0;
  for (int64_t p = 0; p < c.planes; ++p) {
    for (int64_t y = 0; y < c.out_h(); ++y) {
      for (int64_t x = 0; x < c.out_w(); ++x) {
        std::vector<int64_t> elements;
        for (int64_t ky = 0; ky < c.kernel_h; ++ky) {
          for (int64_t kx = 0; kx < c.kernel_w; ++kx) {
            const int64_t iy = y * c.stride_h + ky * c.dilation_h - c.top;
            const int64_t ix = x * c.stride_w + kx * c.dilation_w - c.left;
            if (iy < 0 || iy >= c.height || ix < 0 || ix >= c.width) continue;
            elements.push_back((p * c.height + iy) * c.width + ix);
          }
        }
        f(at_y++, y, x, elements);
      }
    }
  }
}

void check_max(const PoolConfig& c, const HostTensor& x) {
  const HostTensor dy = random_f32(y_shape(c), 2), g = random_f32(x_shape(c), 3);
  const auto xv = x.as<float>(), dyv = dy.as<float>(), gv = g.as<float>();
  std::vector<float> y(dyv.size()), dx(xv.size()), gathered(dyv.size());
  for_each_window(c, [&](int64_t at, int64_t, int64_t, const std::vector<int64_t>& elements) {
    int64_t best = -1;
    for (int64_t e : elements) {
      const bool wins =
          best < 0 || xv[e] > xv[best] || (std::isnan(xv[e]) && !std::isnan(xv[best]));
      if (wins) best = e;
    }
    y[at] = best < 0 ? -INFINITY : xv[best];
    gathered[at] = best < 0 ? 0 : gv[best];
    if (best >= 0) dx[best] += dyv[at];
  });
  for (DeviceClass d : device_classes()) {
    const auto got_y = run_plan(plan_max_pool2d(d, c), {x}, dy.type).as<float>();
    const auto got_dx = run_plan(plan_max_pool2d_grad(d, c), {dy, x}, x.type).as<float>();
    const auto got_g = run_plan(plan_max_pool2d_grad_grad(d, c), {g, x}, dy.type).as<float>();
    size_t wrong = 0;
    for (size_t i = 0; i < y.size(); ++i) {
      wrong += ulps(got_y[i], y[i]) != 0;
      wrong += got_g[i] != gathered[i];
    }
    // Windows are summed in another order.
    for (size_t i = 0; i < dx.size(); ++i) wrong += !(std::fabs(got_dx[i] - dx[i]) <= 1e-5);
    EXPECT_EQ(wrong, 0u) << class_name(d) << " x " << to_string(x.type.shape) << " y "
                         << to_string(dy.type.shape);
  }
}

size_t count_far(const std::vector<float>& got, const std::vector<double>& want) {
  size_t wrong = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    wrong += std::isfinite(want[i]) ? !(std::fabs(got[i] - want[i]) <= 3e-6)
                                    : ulps(got[i], want[i]) != 0;
  }
  return wrong;
}

void check_average(PoolConfig c, const HostTensor& x, const HostTensor& dy) {
  const auto xv = x.as<float>(), dyv = dy.as<float>();
  for (bool counts_padding : {true, false}) {
    c.counts_padding = counts_padding;
    std::vector<double> y(dyv.size()), dx(xv.size());
    for_each_window(c, [&](int64_t at, int64_t row, int64_t column,
                           const std::vector<int64_t>& elements) {
      double count = static_cast<double>(elements.size());
      if (counts_padding) {
        const int64_t h = std::min(c.kernel_h, c.height + c.bottom + c.top - row * c.stride_h);
        const int64_t w = std::min(c.kernel_w, c.width + c.right + c.left - column * c.stride_w);
        count = static_cast<double>(h * w);
      }
      for (int64_t e : elements) {
        y[at] += xv[e] / count;
        dx[e] += dyv[at] / count;
      }
    });
    for (DeviceClass d : device_classes()) {
      const auto got_y = run_plan(plan_avg_pool2d(d, c), {x}, dy.type).as<float>();
      const auto got_dx = run_plan(plan_avg_pool2d_grad(d, c), {dy}, x.type).as<float>();
      EXPECT_EQ(count_far(got_y, y) + count_far(got_dx, dx), 0u)
          << class_name(d) << " x " << to_string(x.type.shape) << " y " << to_string(dy.type.shape);
    }
  }
}

PoolConfig make(Shape x, int64_t kernel, int64_t stride, int64_t pad = 0, int64_t dilation = 1) {
  PoolConfig c;
  c.planes = x[0], c.height = x[1], c.width = x[2];
  c.kernel_h = c.kernel_w = kernel;
  c.stride_h = c.stride_w = stride;
  c.top = c.bottom = c.left = c.right = pad;
  c.dilation_h = c.dilation_w = dilation;
  return c;
}

// Windows of 3 x 3 by vectors, with `after` to the right and below.
PoolConfig threes(Shape x, int64_t stride, int64_t before, int64_t after) {
  PoolConfig c = make(x, 3, stride, before);
  c.bottom = c.right = after;
  return c;
}

std::vector<PoolConfig> configs(bool is_small) {
  if (is_small) {
    PoolConfig lopsided = make({2, 5, 6}, 2, 1);
    lopsided.kernel_w = 3, lopsided.stride_w = 2, lopsided.bottom = 1, lopsided.left = 2;
    return {make({1, 1, 1}, 1, 1),        make({2, 4, 4}, 2, 2),       make({3, 5, 7}, 3, 2, 1),
            make({1, 4, 5}, 3, 1),        make({2, 1, 7}, 1, 3),       lopsided,
            make({0, 4, 4}, 2, 2),        make({1, 2, 19}, 2, 1, 1),   make({2, 4, 20}, 2, 2),
            make({17, 4, 4}, 4, 1),       make({17, 8, 8}, 2, 2),      threes({16, 8, 16}, 2, 1, 1),
            threes({16, 9, 19}, 2, 0, 0), threes({17, 4, 8}, 1, 1, 1), threes({16, 6, 11}, 1, 0, 1),
            make({17, 7, 7}, 2, 2),       make({18, 3, 5}, 2, 2),      make({16, 5, 5}, 3, 1, 1),
            make({19, 6, 5}, 3, 2, 1),    make({16, 3, 3}, 3, 2, 1)};
  }
  return {
      make({6, 28, 28}, 2, 2),         make({3, 56, 57}, 3, 2, 1),    make({40, 14, 14}, 2, 2),
      make({17, 13, 13}, 3, 2),        make({16, 10, 10}, 2, 2),      make({33, 21, 20}, 4, 3),
      make({64, 7, 7}, 7, 7),          make({5, 17, 40}, 3, 1, 1),    make({2, 33, 64}, 5, 3, 2),
      make({1, 130, 131}, 2, 2),       make({2, 12, 18}, 2, 5),       make({37, 5, 5}, 5, 1),
      make({100, 3, 3}, 2, 1),         make({7, 31, 16}, 4, 4, 0),    threes({18, 56, 56}, 2, 1, 1),
      threes({16, 13, 33}, 2, 1, 1),   threes({33, 12, 71}, 2, 0, 1), threes({16, 11, 31}, 2, 1, 0),
      threes({19, 30, 47}, 1, 1, 1),   threes({16, 7, 18}, 1, 0, 0),  threes({16, 7, 18}, 1, 1, 0),
      threes({20, 5, 30}, 1, 0, 1),    threes({16, 40, 97}, 1, 1, 1), threes({17, 9, 130}, 2, 1, 1),
      threes({16, 260, 260}, 1, 1, 1), make({3, 40, 70}, 5, 2, 2),    make({17, 9, 12}, 4, 3, 1),
      make({40, 7, 7}, 3, 1, 1),       make({33, 13, 13}, 3, 2),      make({50, 8, 6}, 3, 2, 1),
      make({5, 52, 52}, 5, 1, 2)};
}

TEST(Pool, MaxOfSmallPlanes) {
  for (const PoolConfig& c : configs(true)) check_max(c, random_f32(x_shape(c), 1));
  const PoolConfig dilated = make({2, 6, 7}, 2, 1, 1, 2), hollow = make({1, 1, 4}, 2, 1, 1, 2);
  PoolConfig lopsided = make({18, 6, 7}, 2, 1);
  lopsided.kernel_w = 3, lopsided.dilation_h = 2, lopsided.left = 1;
  const PoolConfig far = make({16, 5, 5}, 3, 2, 3, 3);  // taps all before x or behind it
  for (const PoolConfig& c : {dilated, lopsided, far, make({17, 5, 5}, 3, 1, 1)}) {
    check_max(c, random_f32(x_shape(c), 1));
  }
  check_max(hollow, random_f32(x_shape(hollow), 1));  // all taps of a row of windows are padding
}

TEST(PoolLarge, Max) {
  for (const PoolConfig& c : configs(false)) check_max(c, random_f32(x_shape(c), 1));
  for (const PoolConfig& c :
       {make({3, 40, 41}, 3, 2, 2, 3), make({20, 13, 15}, 3, 2, 0, 2), make({33, 13, 13}, 5, 1, 2),
        make({18, 13, 12}, 9, 1, 4), make({19, 10, 17}, 3, 2, 2, 2)}) {
    check_max(c, random_f32(x_shape(c), 1));
  }
}

// Fewer rows and columns than a strip of GPUs has, as many, and more; padded evenly and not.
void check_strips(const Shape& x) {
  PoolConfig uneven = make(x, 3, 2, 1);
  uneven.top = 2, uneven.left = 0, uneven.right = 2;
  for (const PoolConfig& c : {make(x, 2, 2), make(x, 2, 2, 1), make(x, 3, 1, 1), make(x, 3, 1),
                              make(x, 3, 2), make(x, 3, 2, 1), make(x, 5, 1, 2), uneven}) {
    check_max(c, random_f32(x, 1));
    check_average(c, random_f32(x, 1), random_f32(y_shape(c), 2));
  }
}

TEST(Pool, StripsOfGpus) {
  for (const Shape& x : {Shape{1, 5, 5}, {2, 8, 7}, {1, 9, 10}}) check_strips(x);
}

TEST(PoolLarge, StripsOfGpus) {
  for (const Shape& x : {Shape{5, 14, 14}, {3, 15, 33}, {2, 28, 57}, {70, 7, 7}}) check_strips(x);
}

// The first of equal elements wins; NaN wins over anything; -inf is a number like others.
TEST(Pool, TiesAndSpecialNumbers) {
  for (const PoolConfig& c :
       {make({2, 6, 20}, 3, 2, 1), make({3, 5, 4}, 2, 1), make({2, 6, 20}, 2, 2),
        make({17, 8, 8}, 2, 2), make({17, 5, 4}, 3, 1, 1), make({17, 4, 3}, 3, 2, 1),
        threes({16, 8, 19}, 2, 1, 1), threes({16, 4, 9}, 1, 1, 1)}) {
    std::vector<float> ties(elements(x_shape(c)));
    for (size_t i = 0; i < ties.size(); ++i) ties[i] = static_cast<float>(i * 7 % 3);
    check_max(c, f32(x_shape(c), ties));
    for (const float nan : {NAN, -NAN}) {
      for (const float other : {-INFINITY, INFINITY}) {
        for (size_t i = 0; i < ties.size(); ++i) ties[i] = i % 7 == 0 ? nan : other;
        check_max(c, f32(x_shape(c), ties));
      }
    }
  }
}

void check_random_average(const PoolConfig& c) {
  check_average(c, random_f32(x_shape(c), 1), random_f32(y_shape(c), 2));
}

TEST(Pool, AverageOfSmallPlanes) {
  for (const PoolConfig& c : configs(true)) check_random_average(c);
}

// Rows of 16 windows and more in the vectors of other CPUs, and in this one's.
TEST(Pool, MaxAndAverageInNarrowRegisters) {
  for (int64_t registers : tested_registers()) {
    const RegistersScope scope(registers);
    for (const PoolConfig& c :
         {make({2, 6, 20}, 4, 1, 1), make({2, 7, 37}, 5, 2, 2), make({1, 5, 16}, 2, 1)}) {
      check_max(c, random_f32(x_shape(c), 1));
      check_random_average(c);
    }
  }
}

TEST(PoolLarge, Average) {
  for (const PoolConfig& c : configs(false)) check_random_average(c);
}

TEST(PoolLarge, MorePlanesThan16BitsCount) {
  const PoolConfig c = make({70000, 2, 2}, 2, 2);
  check_max(c, random_f32(x_shape(c), 1));
  check_random_average(c);
}

// First, last and in between.
HostTensor with_specials(const HostTensor& tensor) {
  auto values = tensor.as<float>();
  const float specials[] = {INFINITY, NAN, -INFINITY, INFINITY, NAN};
  for (size_t i = 0; i < 5 && !values.empty(); ++i)
    values[(values.size() - 1) * i / 4] = specials[i];
  return f32(tensor.type.shape, values);
}

// NaN and infinity reach the windows that hold them, and no other.
TEST(PoolLarge, AverageKeepsSpecialNumbersInTheirWindows) {
  std::vector<PoolConfig> all = configs(true);
  all.insert(all.end(),
             {make({5, 17, 40}, 3, 1, 1), make({2, 12, 18}, 2, 5), make({37, 5, 5}, 5, 1),
              make({7, 31, 16}, 4, 4, 0), make({6, 28, 28}, 2, 2), threes({16, 13, 33}, 2, 1, 1),
              threes({16, 7, 18}, 1, 1, 0), threes({19, 30, 47}, 1, 1, 1)});
  for (const PoolConfig& c : all) {
    check_average(c, with_specials(random_f32(x_shape(c), 1)),
                  with_specials(random_f32(y_shape(c), 2)));
  }
}

}  // namespace
}  // namespace ballast::kernels::testing
