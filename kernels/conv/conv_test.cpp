#include "kernels/conv/conv_reference.h"
#include "kernels/conv/tiles/conv_tiles.h"
#include "kernels/plan/registers.h"

#include <random>
#include <utility>
#include <vector>

namespace ballast::kernels::testing {
namespace {

TEST(Conv, SmallShapes) {
  check(make({1, 1, 1, 1}, 1, 1));
  check(make({2, 3, 5, 4}, 2, 3));
  check(make({1, 2, 5, 5}, 3, 3, 1, 1));
  check(make({1, 2, 6, 7}, 3, 3, 2, 1));
  check(make({1, 4, 6, 5}, 4, 3, 1, 1, 1, 4));
  check(make({1, 4, 5, 4}, 6, 2, 1, 0, 2, 2));
  check(make({1, 2, 4, 33}, 2, 3, 1, 1, 1, 2));
  check(make({1, 2, 3, 17}, 9, 2, 1, 1));       // tiles, padded planes
  check(make({1, 2, 3, 10}, 9, 2, 1, 1));       // copied in half vectors
  check(make({1, 2, 3, 11}, 9, 2, 2, 1));       // in quarters, of two phases
  check(make({1, 6, 4, 10}, 14, 3));            // tiles of pixels side by side
  check(make({1, 4, 6, 6}, 5, 2, 3));           // an input gradient that is gathered
  check(make({1, 2, 8, 12}, 5, 5, 4, 2));       // of few channels
  check(make({1, 4, 7, 9}, 5, 3, 2, 1));        // of planes that strides do not divide
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
  for (const int64_t width : {1, 2, 3}) {  // rows shorter than strides
    ConvConfig narrow = make({2, 3, 15, width}, 9, 3, 1, 1);
    for (const int64_t stride : {2, 3, 4}) {
      narrow.stride_w = stride;
      check(narrow);
    }
  }
}

// Narrow windows side by side, whose pixels become channels.
TEST(Conv, WindowsSideBySide) {
  const RegistersScope scope(kNarrowRegisters);
  check(make({2, 3, 16, 24}, 10, 4, 4));
  check(make({3, 9, 6, 10}, 7, 2, 2));
  check(make({2, 2, 9, 15}, 5, 3, 3));
  check(make({1, 1, 14, 21}, 3, 7, 7));
  check(make({1, 40, 2, 4}, 6, 2, 2));
  ConvConfig oblong = make({2, 5, 9, 8}, 6, 3, 3);
  oblong.kernel_w = oblong.stride_w = 4;
  check(oblong);
}

// Single pixels with strides, of rows that are picked and spread in vectors of 4, 8 and 16, and
// neither.
TEST(Conv, PixelsApart) {
  check(make({2, 3, 4, 8}, 5, 1, 2));
  check(make({1, 3, 5, 17}, 4, 1, 2));
  check(make({3, 2, 2, 32}, 3, 1, 2));
  check(make({1, 4, 7, 13}, 6, 1, 3, 0, 1, 2));
  check(make({2, 2, 3, 5}, 2, 1, 2));
  ConvConfig rows = make({2, 3, 6, 20}, 4, 1);
  rows.stride_h = 3, rows.stride_w = 2;
  check(rows);
  rows.stride_w = 1;
  check(rows);
  check(make({2, 6, 8, 20}, 6, 1, 2, 0, 1, 6));
}

// y of `plan`, which reads x and w, against loops in double precision.
void check_forward(const ConvConfig& c, const Plan& plan) {
  const HostTensor x = random_f32(x_shape(c), 1), w = random_f32(w_shape(c), 2);
  const auto xv = x.as<float>(), wv = w.as<float>();
  const TensorType type{DType::kF32, y_shape(c)};
  Totals y(elements(type.shape));
  for_each_product(c, [&](int64_t at_x, int64_t at_w, int64_t at_y) {
    y.add(at_y, double{xv[at_x]} * wv[at_w]);
  });
  expect_near(run_plan(plan, {x, w}, type).as<float>(), y.value, y.magnitude,
              c.kernel_h * c.kernel_w * c.in_channels / c.groups, name_of(c));
}

// Windows of a pixel in tiles of pixels side by side, blocks of two planes; more in TilesOfPoints.
TEST(Conv, PointsInTiles) {
  if (!runs_cpu_class()) GTEST_SKIP() << "kernels of CPUs";
  const ConvConfig c = make({24, 3, 3, 7}, 28, 1);
  const RegistersScope scope(kWideRegisters);
  check_forward(c, plan_conv2d_tiles(c, {}));
}

// With as few groups, taps and channels as that takes; more in ChannelsAndPlanes.
TEST(Conv, ChannelsInTheLanes) {
  if (!runs_cpu_class()) GTEST_SKIP() << "kernels of CPUs";
  const ConvConfig c = make({8, 9, 1, 17}, 64, 5, 1, 2);
  check_forward(c, plan_conv2d(DeviceClass::kCpu, c, {}));
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
  if (!tests_other_cpus()) GTEST_SKIP() << "PoCL has them";
  const RegistersScope scope(other_registers());
  check(make({2, 19, 9, 17}, 65, 3, 1, 1));  // padded planes
  check(make({8, 11, 1, 17}, 64, 3, 1, 1));  // with channels in the lanes
  check(make({2, 48, 31, 31}, 64, 4, 3));    // pixels one by one, taps in two chunks
  check(make({2, 48, 7, 10}, 64, 4, 3));     // few of them
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
  constexpr int64_t kMostProducts = 20000000;
  std::mt19937 random(1);
  for (int checked = 0; checked < 30;) {
    const ConvConfig c = draw(random);
    if (c.out_h() <= 0 || c.out_w() <= 0) continue;
    if (products_of(c) > kMostProducts) continue;
    check(c);
    ++checked;
  }
}

// Few channels of results, or of x: windows whose kernels know them, in rows of one vector and two.
TEST(ConvLarge, RowsOfFewChannels) {
  for (int64_t window : {3, 5}) {
    for (int64_t width : {17, 40}) {
      check(make({2, 7, 9, width}, 3, window, 1, window / 2));
      check(make({2, 2, 10, width}, 12, window, 1, window / 2));
      check(make({1, 4, 8, width}, 2, window, 1, 0, 1, 2));
    }
  }
  check(make({1, 5, 21, 40}, 2, 5, 2, 2));
}

// Blocks of all pixels of two images and more, whole vectors of them and fewer.
TEST(ConvLarge, TilesOfSeveralImages) {
  check(make({8, 19, 7, 7}, 200, 1));
  check(make({3, 48, 11, 13}, 70, 1));  // weights transposed
  check(make({1, 16, 33, 35}, 50, 1));
  check(make({9, 19, 9, 13}, 256, 3, 2, 1));
  check(make({10, 9, 9, 8}, 150, 4, 3));
}

// dw as a product: windows that overlap, that are apart, and with gaps between their rows.
TEST(ConvLarge, WeightsOfFewWindows) {
  check(make({1, 243, 5, 6}, 250, 3, 1, 1));
  check(make({2, 131, 7, 9}, 450, 3, 2, 1));
  check(make({1, 150, 9, 9}, 400, 3, 1, 0, 2));
}

// 1x1 in tiles of pixels side by side: blocks of one plane, of which the last moves inwards, and of
// several planes; lanes and tiles that are not filled; both ways.
TEST(ConvLarge, TilesOfPoints) {
  check(make({8, 96, 7, 7}, 160, 1));
  check(make({2, 192, 14, 14}, 124, 1, 1, 0, 1, 2));
  check(make({5, 97, 11, 13}, 30, 1));
  check(make({3, 96, 11, 12}, 32, 1));  // not one block of whole rows
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
  check(make({2, 1, 20, 500}, 24, 9, 4, 0));  // many results of one channel
  check(make({1, 32, 19, 35}, 33, 3, 2));     // strides that leave a row and a column
  check(make({2, 6, 23, 30}, 16, 5, 3, 1));
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
  check(make({8, 24, 13, 22}, 64, 3, 2, 1));  // channels in the lanes, pixels of several rows
  check(make({8, 10, 6, 5}, 72, 5, 1, 2));
  check(make({2, 6, 6, 18}, 512, 3, 1, 1));  // weights whose sums are turned back in place
  check(make({1, 7, 4, 17}, 500, 3, 1, 1));
  // Windows of more taps than a chunk has, then rows of more.
  check(make({1, 2, 25, 27}, 64, 20));
  ConvConfig wide = make({1, 2, 4, 810}, 64, 3);
  wide.kernel_w = 780;
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

}  // namespace
}  // namespace ballast::kernels::testing
