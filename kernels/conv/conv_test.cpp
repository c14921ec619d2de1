#include "kernels/conv/conv_reference.h"
#include "kernels/registers.h"

#include <random>
#include <vector>

namespace ballast::kernels::testing {
namespace {

// y, dx and dw of one convolution against loops in double precision.
void check(const ConvConfig& c) {
  const HostTensor x = random_f32(x_shape(c), 1), w = random_f32(w_shape(c), 2),
                   dy = random_f32(y_shape(c), 3);
  const auto [y, dx, dw] = AllTotals(c, x.as<float>(), w.as<float>(), dy.as<float>());
  const int64_t taps = c.kernel_h * c.kernel_w;
  for (DeviceClass d : device_classes()) {
    const std::string what = class_name(d) + " " + name_of(c);
    expect_near(run_plan(plan_conv2d(d, c, {}), {x, w}, dy.type).as<float>(), y.value, y.magnitude,
                taps * c.in_channels / c.groups, "y of " + what);
    expect_near(run_plan(plan_conv2d_input_grad(d, c), {dy, w}, x.type).as<float>(), dx.value,
                dx.magnitude, taps * c.out_channels / c.groups, "dx of " + what);
    expect_near(run_plan(plan_conv2d_weight_grad(d, c), {dy, x}, w.type).as<float>(), dw.value,
                dw.magnitude, c.batch * c.out_h() * c.out_w(), "dw of " + what);
  }
}

TEST(Conv, SmallShapes) {
  check(make({1, 1, 1, 1}, 1, 1));
  check(make({2, 3, 5, 4}, 2, 3));
  check(make({1, 2, 5, 5}, 3, 3, 1, 1));
  check(make({1, 2, 6, 7}, 3, 3, 2, 1));
  check(make({1, 4, 6, 5}, 4, 3, 1, 1, 1, 4));
  check(make({1, 4, 5, 4}, 6, 2, 1, 0, 2, 2));
  check(make({1, 2, 4, 33}, 2, 3, 1, 1, 1, 2));
  check(make({1, 2, 3, 17}, 9, 2, 1, 1));       // tiles, padded planes
  check(make({1, 6, 4, 10}, 14, 3));            // tiles of pixels side by side
  check(make({1, 4, 4, 6}, 5, 1, 2));           // an input gradient that is gathered
  check(make({1, 1, 8, 16}, 16, 8, 8));         // patches
  check(make({1, 9, 5, 4}, 9, 3, 1, 1, 1, 9));  // depthwise with channels in the lanes
  check(make({1, 8, 9, 8}, 8, 5, 2, 2, 1, 8));
  // Of GPUs: input gradients by taps that hit, where the strides and dilations of either axis have
  // common divisors or none.
  check(make({1, 2, 7, 10}, 2, 3, 2, 1, 1, 2));
  check(make({1, 2, 9, 8}, 4, 5, 3, 2, 2, 2));
  check(make({1, 2, 11, 13}, 2, 4, 3, 2, 2, 2));
  check(make({1, 1, 13, 12}, 2, 3, 4, 3, 6));
  check(make({1, 1, 12, 11}, 9, 3, 4, 1));  // enough channels for blocks, and few that are hit
  ConvConfig mixed = make({2, 2, 10, 13}, 2, 4, 5, 3, 3, 2);
  mixed.stride_w = 1, mixed.dilation_h = 1, mixed.kernel_w = 2;
  check(mixed);
  ConvConfig lopsided = make({1, 1, 4, 9}, 2, 2);
  lopsided.kernel_w = 3, lopsided.stride_w = 2, lopsided.top = 1, lopsided.right = 2;
  check(lopsided);
}

// With as few groups, taps and channels as that takes; more in ChannelsAndPlanes.
TEST(Conv, ChannelsInTheLanes) {
  if (!runs_cpu_class()) GTEST_SKIP() << "kernels of CPUs";
  const ConvConfig c = make({8, 9, 1, 17}, 64, 5, 1, 2);
  const HostTensor x = random_f32(x_shape(c), 1), w = random_f32(w_shape(c), 2);
  const auto xv = x.as<float>(), wv = w.as<float>();
  const TensorType type{DType::kF32, y_shape(c)};
  Totals y(8 * 64 * 17);
  for_each_product(c, [&](int64_t at_x, int64_t at_w, int64_t at_y) {
    y.add(at_y, double{xv[at_x]} * wv[at_w]);
  });
  const Plan plan = plan_conv2d(DeviceClass::kCpu, c, {});
  expect_near(run_plan(plan, {x, w}, type).as<float>(), y.value, y.magnitude, 225, name_of(c));
}

// Towards the input, the phases of two apart.
TEST(Conv, PhasesInTheLanes) {
  if (!runs_cpu_class()) GTEST_SKIP() << "kernels of CPUs";
  const ConvConfig c = make({1, 64, 2, 16}, 64, 3, 2, 1);
  const HostTensor dy = random_f32(y_shape(c), 1), w = random_f32(w_shape(c), 2);
  const auto dyv = dy.as<float>(), wv = w.as<float>();
  Totals dx(64 * 2 * 16);
  for_each_product(c, [&](int64_t at_x, int64_t at_w, int64_t at_y) {
    dx.add(at_x, double{dyv[at_y]} * wv[at_w]);
  });
  const RegistersScope scope(kWideRegisters);
  const Plan plan = plan_conv2d_input_grad(DeviceClass::kCpu, c);
  const TensorType type{DType::kF32, x_shape(c)};
  expect_near(run_plan(plan, {dy, w}, type).as<float>(), dx.value, dx.magnitude, 576, name_of(c));
}

// Each kind of kernel in the tiles that this machine does not choose.
TEST(ConvLarge, TilesOfOtherCpus) {
  const RegistersScope scope(has_wide_registers() ? kNarrowRegisters : kWideRegisters);
  check(make({2, 19, 9, 17}, 65, 3, 1, 1));  // padded planes
  check(make({8, 11, 1, 17}, 64, 3, 1, 1));  // with channels in the lanes
  check(make({2, 48, 31, 31}, 64, 4, 3));    // pixels one by one, taps in two chunks
  check(make({2, 48, 7, 10}, 64, 4, 3));     // few of them
}

TEST(ConvLarge, DepthwiseRowsInEitherVectors) {
  for (int64_t registers : {kWideRegisters, kNarrowRegisters}) {
    const RegistersScope scope(registers);
    for (int64_t width : {8, 9, 11, 16, 23, 40, 64})
      check(make({2, 5, 9, width}, 5, 3, 1, 1, 1, 5));
    for (int64_t height : {4, 5, 6, 9}) check(make({2, 9, height, 28}, 18, 5, 1, 2, 1, 9));
    for (int64_t width : {8, 9, 10, 15, 16, 17, 18, 23, 24, 25, 26, 31, 32}) {
      check(make({2, 9, 9, width}, 9, 5, 1, 2, 1, 9));
    }
  }
}

// A row to each vector, and two; squares that have a kernel, and others.
TEST(Conv, DepthwiseInPlace) {
  check(make({2, 3, 14, 14}, 3, 3, 1, 1, 1, 3));
  check(make({2, 3, 7, 7}, 3, 3, 1, 1, 1, 3));
  check(make({1, 65, 6, 6}, 65, 3, 1, 1, 1, 65));  // weights of two planes at a time
  check(make({1, 2, 6, 6}, 2, 5, 1, 2, 1, 2));     // both in a register
  check(make({2, 4, 7, 7}, 4, 3, 1, 1, 1, 4));
  check(make({1, 2, 8, 8}, 2, 3, 1, 1, 1, 2));
  check(make({1, 2, 4, 10}, 2, 7, 1, 3, 1, 2));
  check(make({1, 2, 5, 18}, 2, 5, 1, 2, 1, 2));
  check(make({1, 2, 7, 17}, 2, 5, 1, 2, 1, 2));  // blocks of rows in registers
  check(make({1, 2, 8, 16}, 2, 3, 2, 1, 1, 2));
  check(make({1, 1, 8, 34}, 1, 3, 2, 1, 1, 1));
  check(make({1, 2, 5, 17}, 2, 3, 1, 1, 1, 2));
  check(make({1, 1, 4, 72}, 1, 3, 1, 1, 1, 1));  // copied, in lines
}

TEST(ConvLarge, DepthwiseSmallSquares) {
  for (int64_t registers : {kWideRegisters, kNarrowRegisters}) {
    const RegistersScope scope(registers);
    for (int64_t side = 4; side <= 15; ++side) {
      check(make({3, 11, side, side}, 11, 3, 1, 1, 1, 11));
      check(make({1, 72, side, side}, 72, 3, 1, 1, 1, 72));
      check(make({2, 163, side, side}, 163, 3, 1, 1, 1, 163));
      check(make({3, 11, side, side}, 11, 5, 1, 2, 1, 11));
      check(make({2, 163, side, side}, 163, 5, 1, 2, 1, 163));
      check(make({2, 5, side, side}, 10, 3, 1, 1, 1, 5));
    }
    for (int64_t side : {6, 7, 8}) {  // two planes side by side, several such pairs to a group
      check(make({3, 166, side, side}, 166, 3, 1, 1, 1, 166));
      check(make({2, 166, side, side}, 166, 5, 1, 2, 1, 166));
    }
  }
}

// Rows of one block, of two that overlap or not, and more; planes in one strip and in several.
TEST(ConvLarge, DepthwiseTurned) {
  for (int64_t registers : {kWideRegisters, kNarrowRegisters}) {
    const RegistersScope scope(registers);
    for (int64_t width : {7, 8, 9, 11, 16, 17, 34, 37}) {
      check(make({3, 19, 8, width}, 19, 7, 1, 3, 1, 19));
      check(make({2, 8, 5, width}, 8, 5, 1, 2, 1, 8));
    }
    check(make({2, 40, 7, 7}, 40, 7, 1, 3, 1, 40));
    check(make({3, 17, 7, 7}, 17, 5, 1, 2, 1, 17));
    check(make({2, 5, 14, 14}, 5, 7, 1, 3, 1, 5));
    check(make({1, 2, 8, 125}, 2, 5, 1, 2, 1, 2));
    check(make({2, 9, 40, 40}, 9, 7, 1, 3, 1, 9));
    check(make({1, 17, 60, 44}, 17, 5, 1, 2, 1, 17));
    check(make({1, 3, 4, 100}, 3, 7, 1, 3, 1, 3));
  }
}

// On GPUs steps are taps of one channel after the other.
TEST(Conv, FewChannels) { check(make({1, 3, 4, 5}, 8, 3, 1, 1)); }

TEST(ConvLarge, FewChannels) {
  check(make({2, 3, 20, 21}, 10, 5, 2, 2));
  check(make({1, 16, 18, 20}, 16, 3, 2, 1, 1, 2));  // dx by phases of few channels
  check(make({8, 2, 64, 64}, 16, 8, 8));            // dw of patches in tiles
  check(make({1, 2, 9, 70}, 70, 3, 1, 1, 2));
  check(make({2, 6, 12, 12}, 27, 4, 4, 0, 1, 3));
}

TEST(ConvLarge, PointsOfAllSamplesSideBySide) {
  check(make({3, 40, 7, 7}, 33, 1));
  check(make({5, 96, 3, 6}, 64, 1, 1, 0, 1, 2));
  check(make({2, 64, 5, 13}, 48, 1));  // too many for the weight gradient
}

// Whole vectors of results, whole groups of four rows, and more.
TEST(ConvLarge, DepthwiseHalves) {
  for (int64_t registers : {kWideRegisters, kNarrowRegisters}) {
    const RegistersScope scope(registers);
    for (int64_t width : {16, 18, 30, 32, 46, 56, 112}) {
      check(make({2, 11, 8, width}, 11, 3, 2, 1, 1, 11));
      check(make({1, 5, 14, width}, 5, 3, 2, 1, 1, 5));
    }
  }
  check(make({8, 48, 64, 128}, 48, 3, 2, 1, 1, 48));  // dx past the caches
}

TEST(ConvLarge, DepthwiseChannelsInTheLanes) {
  check(make({3, 40, 14, 15}, 40, 3, 1, 1, 1, 40));
  check(make({2, 17, 7, 9}, 17, 3, 1, 1, 1, 17));
  check(make({2, 33, 31, 45}, 33, 3, 2, 1, 1, 33));
  check(make({2, 16, 100, 90}, 16, 5, 1, 2, 1, 16));  // blocks of rows
  check(make({1, 8, 117, 61}, 8, 5, 3, 1, 1, 8));     // dx of rows that no window reaches
  check(make({9, 24, 8, 9}, 24, 7, 1, 3, 1, 24));
  check(make({1, 19, 80, 67}, 19, 7, 2, 3, 1, 19));
  check(make({2, 20, 12, 15}, 20, 4, 1, 3, 2, 20));  // any window
  check(make({2, 20, 21, 13}, 20, 3, 2, 4, 2, 20));  // more padding than reach
  ConvConfig lopsided = make({2, 12, 11, 10}, 12, 3, 2, 0, 1, 12);
  lopsided.kernel_w = 5, lopsided.top = 2, lopsided.right = 3, lopsided.stride_w = 1;
  check(lopsided);
}

// Drawn at random, always the same: extents around what kernels cut, so that some of them need
// several blocks, chunks and groups of which the last is shorter.
ConvConfig draw(std::mt19937& random) {
  const auto pick = [&](const std::vector<int64_t>& of) { return of[random() % of.size()]; };
  const auto below = [&](const std::vector<int64_t>& limits) {
    return 1 + static_cast<int64_t>(random()) % pick(limits);
  };
  const int64_t groups = pick({1, 1, 1, 2, 3, 20}), kernel = pick({1, 3, 3, 3, 5, 7, 4}),
                stride = pick({1, 1, 1, 2, 3}), dilation = pick({1, 1, 1, 2});
  const int64_t inputs = groups * below({2, 20, 70}), outputs = groups * below({2, 40, 80});
  const Shape x = {below({1, 3, 9}), inputs, below({12, 40, 90}), below({12, 40, 150})};
  return make(x, outputs, kernel, stride, below({kernel}), dilation, groups);
}

TEST(ConvLarge, DrawnProblems) {
  constexpr double kMostProducts = 2e7;
  std::mt19937 random(1);
  for (int checked = 0; checked < 30;) {
    const ConvConfig c = draw(random);
    if (c.out_h() <= 0 || c.out_w() <= 0) continue;
    const double products = double(elements_of(y_shape(c))) * double(c.in_channels / c.groups) *
                            double(c.kernel_h * c.kernel_w);
    if (products > kMostProducts) continue;
    check(c);
    ++checked;
  }
}

// Blocks of all pixels of two images and more, whole vectors of them and fewer.
TEST(ConvLarge, TilesOfSeveralImages) {
  check(make({8, 19, 7, 7}, 200, 1));
  check(make({9, 19, 9, 13}, 256, 3, 2, 1));
  check(make({10, 9, 9, 8}, 150, 4, 3));
}

// Pixels of a row side by side: one to four such to a row, an odd number of them, of one image and
// several, in several blocks.
TEST(ConvLarge, TilesOfRows) {
  check(make({4, 6, 14, 14}, 16, 5));
  check(make({5, 6, 5, 12}, 15, 3));
  check(make({2, 24, 6, 10}, 32, 3, 1, 0, 1, 2));
  check(make({2, 6, 30, 58}, 14, 3));
  check(make({3, 11, 7, 24}, 16, 3, 1, 1));
  check(make({2, 6, 13, 44}, 16, 3, 1, 1, 2));
}

// Two apart, padded behind alone; and of windows that are padded unevenly.
ConvConfig padded_behind(Shape x, int64_t outputs) {
  ConvConfig c = make(std::move(x), outputs, 3, 2, 0);
  c.bottom = c.right = 1;
  return c;
}
ConvConfig padded_unevenly(Shape x, int64_t outputs) {
  ConvConfig c = make(std::move(x), outputs, 4, 2, 3);
  c.kernel_w = 7, c.left = 0, c.bottom = 0;
  return c;
}

// Towards the input with strides that divide x: of phases in rows of whole vectors, halves, and
// less; where some have no taps.
TEST(ConvLarge, InputGradientsByPhases) {
  check(make({2, 20, 36, 40}, 19, 3, 2, 1));
  check(make({2, 20, 20, 24}, 19, 5, 2, 2));
  check(make({3, 20, 12, 12}, 19, 4, 2, 1, 1, 1));
  check(make({2, 20, 18, 27}, 38, 5, 3, 1, 1, 2));
  check(make({2, 20, 16, 18}, 19, 2, 3, 0));
  check(padded_behind({2, 20, 16, 32}, 19));
  check(padded_unevenly({2, 20, 16, 36}, 19));
}

// Of four phases at once: the last rows and channels move inwards, and windows of other shapes.
TEST(ConvLarge, InputGradientsByPlanePhases) {
  const RegistersScope scope(kWideRegisters);
  check(make({2, 64, 34, 36}, 65, 3, 2, 1));
  check(make({1, 120, 16, 44}, 70, 5, 2, 2));
  check(make({1, 128, 6, 16}, 128, 4, 2, 1, 1, 2));
  check(make({2, 64, 18, 24}, 64, 7, 2, 3));
  check(padded_behind({2, 64, 16, 32}, 80));
  check(padded_unevenly({2, 64, 16, 36}, 64));
}

TEST(Conv, BlocksOfGpus) {
  check(make({1, 32, 2, 2}, 32, 3, 1, 1));  // in parts
  check(make({1, 2, 4, 4}, 16, 3, 2, 1));   // phases
}

TEST(ConvLarge, BlocksOfGpus) {
  check(make({2, 16, 9, 10}, 48, 3, 1, 1));  // channels are whole chunks of steps
  check(make({2, 64, 5, 6}, 64, 3, 1, 1));   // in parts
  check(make({2, 64, 5, 6}, 128, 3, 1, 1, 1, 2));
  check(make({1, 16, 6, 7}, 16, 3, 1, 2, 2));
  check(make({2, 16, 8, 12}, 32, 3, 2, 1));  // phases, as many rows of each
  check(make({2, 32, 7, 9}, 16, 3, 2, 1));   // or fewer of the last
  check(make({1, 3, 20, 22}, 64, 7, 2, 3));
  check(make({1, 20, 10, 8}, 16, 5, 3, 2));
  check(make({1, 4, 12, 12}, 8, 2, 3));  // that no window reaches
  ConvConfig mixed = make({1, 8, 9, 11}, 16, 3, 1, 1);
  mixed.stride_w = 2, mixed.kernel_w = 4, mixed.left = 2;
  check(mixed);
  check(make({3, 64, 4, 6}, 32, 1));  // products
  check(make({3, 64, 5, 7}, 32, 1));
}

TEST(ConvLarge, OddShapes) {
  check(make({2, 3, 17, 19}, 5, 3, 1, 1));
  check(make({1, 7, 13, 11}, 17, 5, 2, 2));
  check(make({3, 5, 9, 23}, 31, 3, 3, 1));
  check(make({1, 6, 15, 15}, 9, 3, 1, 2, 2, 3));
  check(make({2, 3, 12, 12}, 4, 3, 2, 1, 2));
  check(make({2, 19, 7, 7}, 65, 1));
  check(make({2, 19, 8, 7}, 33, 1, 2));
}

TEST(ConvLarge, ChannelsAndPlanes) {
  check(make({2, 64, 14, 14}, 64, 3, 1, 1));
  check(make({1, 48, 28, 28}, 48, 3, 2, 1));
  check(make({1, 16, 32, 32}, 32, 3, 1, 1));
  check(make({2, 64, 16, 16}, 128, 1));
  check(make({2, 3, 120, 96}, 48, 1));  // results that go past the caches
  check(make({2, 48, 120, 96}, 3, 1));
  check(make({8, 48, 56, 56}, 48, 3, 1, 1, 1, 48));  // likewise, planes of whole lines
  check(make({1, 3, 64, 64}, 192, 16, 16));
  check(make({3, 4, 120, 97}, 40, 5, 2, 2));  // dy packed by each of many chunks
  check(make({2, 32, 30, 31}, 32, 3, 1, 1, 1, 32));
  check(make({1, 32, 29, 32}, 32, 3, 2, 1, 1, 32));
  check(make({1, 24, 20, 20}, 48, 3, 1, 1, 1, 24));
  check(make({2, 8, 40, 36}, 8, 3, 1, 1, 1, 8));
  check(make({2, 9, 28, 28}, 18, 3, 1, 1, 1, 9));
  check(make({1, 6, 96, 72}, 6, 3, 1, 1, 1, 6));
  check(make({1, 3, 14, 24}, 3, 3, 1, 1, 1, 3));
  check(make({1, 2, 16, 19}, 2, 3, 1, 1, 1, 2));
  check(make({1, 2, 90, 300}, 2, 3, 1, 1, 1, 2));
  check(make({2, 3, 12, 88}, 3, 3, 1, 1, 1, 3));
  check(make({2, 3, 16, 76}, 6, 3, 1, 1, 1, 3));
  check(make({3, 5, 7, 45}, 5, 3, 1, 1, 1, 5));
  check(make({2, 4, 5, 64}, 8, 3, 1, 1, 1, 4));
  check(make({2, 3, 4, 16}, 3, 3, 1, 1, 1, 3));
  check(make({2, 200, 5, 7}, 128, 1));
  check(make({1, 4, 33, 50}, 4, 5, 1, 4, 2, 4));
  check(make({1, 4, 34, 50}, 4, 3, 3, 1, 1, 4));
  check(make({1, 3, 40, 40}, 64, 7, 2, 3));
  check(make({1, 64, 9, 9}, 64, 3, 1, 1, 1, 4));
  check(make({4, 12, 33, 37}, 120, 3, 1, 1));
  check(make({8, 12, 39, 44}, 64, 3, 2, 1));
  check(make({8, 2, 80, 88}, 64, 8, 8));
  check(make({8, 1, 256, 256}, 64, 16, 16));
  check(make({3, 4, 16, 24}, 48, 8, 8, 0, 1, 2));
  check(make({8, 2, 78, 85}, 64, 8, 7));
  check(make({4, 24, 20, 16}, 128, 3, 1, 2, 2, 2));
  check(make({2, 96, 14, 14}, 64, 3, 1, 1));
  // Windows of more taps than a chunk has, then rows of more.
  check(make({1, 2, 25, 27}, 64, 20));
  ConvConfig wide = make({1, 2, 4, 330}, 64, 3);
  wide.kernel_w = 300;
  check(wide);
}

TEST(Conv, EmptyResultsNeedNoLaunchAndEmptySumsAreZero) {
  for (DeviceClass d : device_classes()) {
    const ConvConfig patches = make({0, 2, 8, 16}, 16, 8, 8);
    const auto no_sums = run_plan(plan_conv2d_weight_grad(d, patches),
                                  {HostTensor(TensorType{DType::kF32, y_shape(patches)}),
                                   HostTensor(TensorType{DType::kF32, x_shape(patches)})},
                                  TensorType{DType::kF32, w_shape(patches)})
                             .as<float>();
    EXPECT_EQ(no_sums, std::vector<float>(16 * 2 * 8 * 8, 0.0f));
    const ConvConfig no_batch = make({0, 2, 5, 5}, 3, 3);
    EXPECT_TRUE(plan_conv2d(d, no_batch, {}).launches.empty());
    EXPECT_TRUE(plan_conv2d_input_grad(d, no_batch).launches.empty());
    const HostTensor no_x(TensorType{DType::kF32, x_shape(no_batch)}),
        no_y(TensorType{DType::kF32, y_shape(no_batch)});
    const auto dw = run_plan(plan_conv2d_weight_grad(d, no_batch), {no_y, no_x},
                             TensorType{DType::kF32, w_shape(no_batch)})
                        .as<float>();
    EXPECT_EQ(dw, std::vector<float>(3 * 2 * 3 * 3, 0.0f));
  }
}

void check_epilogue(const ConvConfig& c, const ConvEpilogue& e) {
  const int64_t plane = c.out_h() * c.out_w();
  const HostTensor x = random_f32(x_shape(c), 1), w = random_f32(w_shape(c), 2),
                   bias = random_f32({c.out_channels}, 4), scale = random_f32({c.out_channels}, 5),
                   shift = random_f32({c.out_channels}, 6), residual = random_f32(y_shape(c), 7);
  for (DeviceClass d : device_classes()) {
    std::vector<float> want = run_plan(plan_conv2d(d, c, {}), {x, w}, residual.type).as<float>();
    const auto b = bias.as<float>(), sc = scale.as<float>(), sh = shift.as<float>(),
               r = residual.as<float>();
    for (size_t i = 0; i < want.size(); ++i) {
      const int64_t o = static_cast<int64_t>(i) / plane % c.out_channels;
      volatile float v = want[i];  // each step rounds
      if (e.has_bias) v = v + b[o];
      if (e.has_scale) v = v * sc[o];
      if (e.has_scale) v = v + sh[o];
      if (e.has_residual) v = v + r[i];
      want[i] = e.has_relu && v <= 0 ? 0.0f : float{v};
    }
    std::vector<HostTensor> inputs{x, w};
    if (e.has_bias) inputs.push_back(bias);
    if (e.has_scale) inputs.insert(inputs.end(), {scale, shift});
    if (e.has_residual) inputs.push_back(residual);
    const auto got = run_plan(plan_conv2d(d, c, e), inputs, residual.type).as<float>();
    size_t wrong = 0;
    for (size_t i = 0; i < got.size(); ++i) wrong += got[i] != want[i];
    EXPECT_EQ(wrong, 0u) << class_name(d) << " " << name_of(c);
  }
}

// Bit for bit what the separate ops give.
TEST(Conv, EpiloguesEqualSeparateSteps) {
  const std::vector<ConvEpilogue> all = {{true, false, false, false}, {false, true, false, true},
                                         {true, true, true, true},    {false, false, true, false},
                                         {false, false, false, true}, {true, false, true, true}};
  std::vector<ConvConfig> configs = {make({1, 2, 5, 4}, 3, 3, 1, 1)};
  if (!is_too_large(1 << 20)) {
    configs.push_back(make({2, 20, 14, 14}, 65, 3, 1, 1));
    configs.push_back(make({2, 64, 11, 19}, 64, 3, 1, 1));
    configs.push_back(make({2, 132, 7, 7}, 130, 3, 1, 1));
    configs.push_back(make({2, 24, 14, 16}, 24, 3, 1, 1, 1, 24));
    configs.push_back(make({2, 12, 16, 17}, 12, 3, 1, 1, 1, 12));
    configs.push_back(make({2, 6, 8, 72}, 6, 3, 1, 1, 1, 6));
    configs.push_back(make({2, 12, 36, 40}, 12, 7, 1, 3, 1, 12));
    configs.push_back(make({1, 40, 16, 16}, 70, 1));
    configs.push_back(make({8, 11, 5, 18}, 64, 3, 1, 1));
    configs.push_back(make({2, 300, 7, 9}, 20, 1));
    configs.push_back(make({3, 6, 14, 14}, 15, 5));  // tiles of rows
    configs.push_back(make({1, 6, 20, 30}, 16, 3));
    configs.push_back(make({2, 200, 6, 7}, 64, 1));
    configs.push_back(make({2, 20, 9, 23}, 64, 1));  // a bias of rows, a narrow panel
    configs.push_back(make({2, 24, 8, 8}, 36, 1, 1, 0, 1, 3));
    configs.push_back(make({2, 64, 5, 6}, 64, 3, 1, 1));  // GPUs: in parts
    configs.push_back(make({2, 512, 4, 6}, 12, 1));       // and a product, with some of them
    configs.push_back(make({2, 3, 32, 40}, 100, 8, 8));
    configs.push_back(make({2, 4, 16, 24}, 48, 8, 8, 0, 1, 2));
  }
  for (const ConvConfig& c : configs) {
    for (const ConvEpilogue& e : all) check_epilogue(c, e);
  }
}
// For every element of x, window of y and tap of a group's channel, taps of the phases beside the
// window included: f(offset in x or -1, offset in w or -1, offset in y or -1), if one is -1.
template <class F>
void for_each_zero(const ConvConfig& c, const F& f) {
  const int64_t group_in = c.in_channels / c.groups, group_out = c.out_channels / c.groups;
  const auto inside = [](int64_t at, int64_t extent) { return at >= 0 && at < extent; };
  // Corners of windows: all whose taps reach x.
  const int64_t reach_h = (c.kernel_h + c.stride_h) * c.dilation_h,
                reach_w = (c.kernel_w + c.stride_w) * c.dilation_w;
  for (int64_t cy = -reach_h; cy < c.height + reach_h; ++cy) {
    for (int64_t cx = -reach_w; cx < c.width + reach_w; ++cx) {
      const int64_t y = cy + c.top, x = cx + c.left;
      const bool is_y = y % c.stride_h == 0 && x % c.stride_w == 0 &&
                        inside(y / c.stride_h, c.out_h()) && inside(x / c.stride_w, c.out_w());
      for (int64_t ky = 1 - c.stride_h; ky < c.kernel_h + c.stride_h - 1; ++ky) {
        for (int64_t kx = 1 - c.stride_w; kx < c.kernel_w + c.stride_w - 1; ++kx) {
          const int64_t iy = cy + ky * c.dilation_h, ix = cx + kx * c.dilation_w;
          const bool is_x = inside(iy, c.height) && inside(ix, c.width);
          const bool is_w = inside(ky, c.kernel_h) && inside(kx, c.kernel_w);
          if (is_x + is_w + is_y != 2) continue;
          for (int64_t o = 0; o < c.out_channels; ++o) {
            for (int64_t i = 0; i < c.batch * group_in; ++i) {
              const int64_t n = i / group_in, ci = i % group_in;
              const int64_t channel = n * c.in_channels + o / group_out * group_in + ci;
              f(is_x ? (channel * c.height + iy) * c.width + ix : -1,
                is_w ? ((o * group_in + ci) * c.kernel_h + ky) * c.kernel_w + kx : -1,
                is_y ? ((n * c.out_channels + o) * c.out_h() + y / c.stride_h) * c.out_w() +
                           x / c.stride_w
                     : -1);
            }
          }
        }
      }
    }
  }
}
// Infinities of both signs and a NaN, in one operand at a time.
void check_not_finite(const ConvConfig& c) {
  const Shape shapes[] = {x_shape(c), w_shape(c), y_shape(c)};
  for (int which = 0; which < 3; ++which) {
    std::vector<std::vector<float>> operands;
    for (int i = 0; i < 3; ++i) operands.push_back(random_f32(shapes[i], i + 1).as<float>());
    std::vector<float>& marked = operands[which];
    marked[marked.size() / 2] = INFINITY;
    marked[marked.size() / 3] = -INFINITY;
    marked[marked.size() - 1] = NAN;
    const std::vector<float>&x = operands[0], &w = operands[1], &dy = operands[2];
    Marked y(dy.size()), dx(x.size()), dw(w.size());
    for_each_product(c, [&](int64_t at_x, int64_t at_w, int64_t at_y) {
      y.value[at_y] += double{x[at_x]} * w[at_w];
      dx.value[at_x] += double{dy[at_y]} * w[at_w];
      dw.value[at_w] += double{dy[at_y]} * x[at_x];
    });
    for_each_zero(c, [&](int64_t at_x, int64_t at_w, int64_t at_y) {
      if (at_x < 0 && !std::isfinite(w[at_w])) y.may_be_nan[at_y] = true;
      if (at_x < 0 && !std::isfinite(dy[at_y])) dw.may_be_nan[at_w] = true;
      if (at_y < 0 && !std::isfinite(w[at_w])) dx.may_be_nan[at_x] = true;
      if (at_y < 0 && !std::isfinite(x[at_x])) dw.may_be_nan[at_w] = true;
      if (at_w < 0 && !std::isfinite(dy[at_y])) dx.may_be_nan[at_x] = true;
    });
    const HostTensor xt = f32(shapes[0], x), wt = f32(shapes[1], w), dyt = f32(shapes[2], dy);
    for (DeviceClass d : device_classes()) {
      const std::string what = fmt::format("{} {} operand {}", class_name(d), name_of(c), which);
      if (which != 2) {
        expect_marks(run_plan(plan_conv2d(d, c, {}), {xt, wt}, dyt.type).as<float>(), y,
                     "y of " + what);
      }
      if (which != 0) {
        expect_marks(run_plan(plan_conv2d_input_grad(d, c), {dyt, wt}, xt.type).as<float>(), dx,
                     "dx of " + what);
      }
      if (which != 1) {
        expect_marks(run_plan(plan_conv2d_weight_grad(d, c), {dyt, xt}, wt.type).as<float>(), dw,
                     "dw of " + what);
      }
    }
  }
}

TEST(Conv, WhatIsNotFiniteStaysWithItsProducts) {
  check_not_finite(make({1, 2, 5, 6}, 3, 3, 1, 1));
  check_not_finite(make({1, 2, 6, 8}, 3, 3, 2, 1));
}

TEST(ConvLarge, WhatIsNotFiniteStaysWithItsProducts) {
  check_not_finite(make({2, 7, 9, 17}, 65, 3, 1, 1));           // pixels in the lanes
  check_not_finite(make({8, 11, 1, 17}, 64, 3, 1, 1));          // channels in the lanes
  check_not_finite(make({1, 32, 14, 14}, 32, 3, 2, 1));         // tiles, phases
  check_not_finite(make({1, 20, 16, 32}, 19, 3, 2, 1));         // woven
  check_not_finite(make({1, 6, 31, 31}, 64, 4, 3));             // dy spread by strides
  check_not_finite(make({2, 24, 8, 8}, 36, 1, 2, 0, 1, 3));     // products that are gathered
  check_not_finite(make({2, 3, 12, 12}, 4, 3, 2, 1, 2));        // rows, dilated
  check_not_finite(make({3, 20, 14, 14}, 20, 3, 1, 1, 1, 20));  // depthwise: small squares,
  check_not_finite(make({3, 20, 7, 7}, 20, 3, 1, 1, 1, 20));
  check_not_finite(make({3, 20, 8, 8}, 20, 3, 1, 1, 1, 20));
  check_not_finite(make({2, 9, 20, 36}, 9, 3, 2, 1, 1, 9));   // halves,
  check_not_finite(make({3, 20, 7, 7}, 20, 5, 1, 2, 1, 20));  // 5x5,
  check_not_finite(make({2, 9, 17, 28}, 9, 5, 1, 2, 1, 9));
  check_not_finite(make({2, 9, 10, 16}, 9, 7, 1, 3, 1, 9));     // turned,
  check_not_finite(make({2, 8, 40, 36}, 8, 3, 1, 1, 1, 8));     // rows in registers,
  check_not_finite(make({8, 48, 56, 56}, 48, 3, 1, 1, 1, 48));  // lines,
  check_not_finite(make({2, 6, 8, 72}, 6, 3, 1, 1, 1, 6));
  check_not_finite(make({2, 6, 30, 31}, 6, 3, 1, 1, 1, 6));  // blocks,
  check_not_finite(make({1, 4, 29, 32}, 4, 3, 2, 1, 1, 4));  // with strides and dilations
  check_not_finite(make({1, 4, 33, 50}, 4, 5, 1, 4, 2, 4));
  check_not_finite(make({2, 17, 9, 7}, 17, 3, 2, 1, 1, 17));  // channels in the lanes
  check_not_finite(make({1, 3, 32, 32}, 48, 8, 8));           // patches
  check_not_finite(make({2, 64, 16, 16}, 32, 1));             // a product
}
// Vectors that hold the end of a row and the beginning of the next.
void check_nan_at_the_end_of_a_row(int width) {
  const ConvConfig c = make({1, 1, 8, width}, 1, 3, 1, 1, 1, 1);
  std::vector<float> values(8 * width, 1.0f);
  values[3 * width + width - 1] = NAN;
  const HostTensor x = f32(x_shape(c), values), w = random_f32(w_shape(c), 3);
  for (DeviceClass d : device_classes()) {
    const auto y =
        run_plan(plan_conv2d(d, c, {}), {x, w}, TensorType{DType::kF32, y_shape(c)}).as<float>();
    for (int row = 0; row < 8; ++row) {
      for (int column = 0; column < width; ++column) {
        const bool expected = row >= 2 && row <= 4 && column >= width - 2;
        EXPECT_EQ(std::isnan(y[row * width + column]), expected) << row << "," << column;
      }
    }
  }
}

TEST(Conv, NanDoesNotReachTheNextRow) {
  for (int width : {24, 72}) check_nan_at_the_end_of_a_row(width);
}

TEST(Conv, NanReachesItsWindowsOnlyAndReluKeepsIt) {
  const ConvConfig c = make({1, 2, 5, 6}, 3, 3, 1, 1);
  std::vector<float> values(2 * 5 * 6, 1.0f);
  values[1 * 30 + 2 * 6 + 1] = NAN;  // channel 1, row 2, column 1
  const HostTensor x = f32(x_shape(c), values), w = random_f32(w_shape(c), 3);
  for (DeviceClass d : device_classes()) {
    ConvEpilogue e;
    e.has_relu = true;
    const auto y =
        run_plan(plan_conv2d(d, c, e), {x, w}, TensorType{DType::kF32, y_shape(c)}).as<float>();
    for (int o = 0; o < 3; ++o) {
      for (int row = 0; row < 5; ++row) {
        for (int column = 0; column < 6; ++column) {
          const bool expected = row >= 1 && row <= 3 && column <= 2;
          EXPECT_EQ(std::isnan(y[(o * 5 + row) * 6 + column]), expected) << row << "," << column;
        }
      }
    }
  }
}

}  // namespace
}  // namespace ballast::kernels::testing
