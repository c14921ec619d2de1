#include "kernels/conv/conv_arguments.h"
#include "kernels/conv/conv_operands.h"
#include "kernels/conv/depthwise/conv_depth.h"
#include "kernels/conv/depthwise/conv_depth_couples.h"
#include "kernels/conv/depthwise/conv_depth_phases.h"
#include "kernels/conv/depthwise/conv_rows.h"
#include "kernels/conv/gpu/conv_blocks.h"
#include "kernels/conv/gpu/conv_strips.h"
#include "kernels/conv/grouped/conv_grouped.h"
#include "kernels/conv/planes/conv_plane_phases.h"
#include "kernels/conv/planes/conv_planes.h"
#include "kernels/conv/products/conv_moved.h"
#include "kernels/conv/products/conv_patches.h"
#include "kernels/conv/products/conv_picked.h"
#include "kernels/conv/products/conv_products.h"
#include "kernels/conv/products/conv_side_by_side.h"
#include "kernels/conv/tiles/conv_tiles.h"
#include "kernels/conv/tiles/conv_weight.h"
#include "kernels/conv/winograd/conv_dilated.h"
#include "kernels/conv/winograd/conv_winograd.h"
#include "kernels/conv/winograd/conv_winograd_weight.h"
#include "kernels/kernels.h"
#include "kernels/plan/halide_runtime.h"
#include "kernels/plan/plan_builder.h"
#include "kernels/plan/registers.h"
#include "kernels/plan/streaming.h"
#include "kernels/recipe/lanes.h"
#include "kernels/reduce/parts.h"
#include "kernels/shape/shape.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <string>
#include <vector>

namespace ballast::kernels {
namespace {

// Result channels per group that would fill too few of 16 lanes: pixels become the lanes.
constexpr int64_t kFewChannels = 3;

int64_t out_extent(int64_t in, int64_t before, int64_t after, int64_t kernel, int64_t dilation,
                   int64_t stride) {
  const int64_t room = in + before + after - ((kernel - 1) * dilation + 1);
  return room < 0 ? 0 : room / stride + 1;
}

bool is_empty(const Shape& shape) { return elements_of(shape) == 0; }

// Whether results of c's planes, so many of them, are written past the caches. Tiles hold them back
// until they can be written in long runs, from which such results gain nothing.
bool are_streamed(int64_t planes, const ConvConfig& c) {
  return should_stream(DeviceClass::kCpu, planes, c.height * c.width, kStreamedBytes);
}

// Whether a CPU has wide registers and output channels fill tiles of them. Then conv_tiles, which
// reads x where it lies, is better than a product that needs x copied to rows (16x16 patches 3.2 to
// 2.9 ms on a Zen 4), or whose lanes are pixels of small planes (has_small_planes).
bool are_whole_tiles(int64_t channels, int64_t pixels) {
  const ConvTile& tile = choose_conv_tile(channels, pixels);
  return has_wide_registers() && tile.vectors >= 3 && channels % tile.lanes() == 0;
}

// Whether weights of patches are tiles, which read x where it lies, instead of a product of rows
// that are copied: 256 channels of 8 images of 3x224x224 in patches of 16 2.8 to 2.35 ms on an
// Emerald Rapids, 3.4 to 2.9 on a Zen 4. Of 768 channels, and of few windows, a product is as fast
// or faster.
bool are_patches_tiles(const ConvConfig& c) {
  constexpr int64_t kMostChannels = 384, kLeastWindows = 512;
  const int64_t channels = c.out_channels / c.groups,
                taps = c.in_channels / c.groups * c.kernel_h * c.kernel_w;
  const bool is_filled =
      channels <= choose_conv_tile(channels, taps).lanes() || are_whole_tiles(channels, taps);
  return has_wide_registers() && channels <= kMostChannels && is_filled &&
         c.batch * c.out_h() * c.out_w() >= kLeastWindows;
}

// Whether a product of x that is copied is better than tiles, which pass over all weights for each
// block of pixels: of a million and more on an Emerald Rapids 1.02 to 1.06 times for 8 images of
// 7x7, 1.15 for 32; of fewer it is as fast or slower.
bool has_many_weights(const ConvConfig& c) {
  constexpr int64_t kMany = 1 << 20;
  return is_side_by_side(DeviceClass::kCpu, c) && c.in_channels * c.out_channels >= kMany;
}

// Whether packing weights for tiles costs little beside what is multiplied.
bool has_enough_pixels(const ConvConfig& c) { return c.batch * c.height * c.width >= 384; }

// Whether a product whose lanes are pixels leaves many of them empty at the end of each plane, and
// there are enough of them that packing weights costs little. Tiles of such 1x1 convolutions, on 2
// cores of a Zen 4, in turns: 1024 to 256 channels of 14x14 1.24 times faster, 256 to 1024 1.11,
// 2048 to 512 of 7x7 1.35; towards the input 1.07, 1.15 and 1.25.
bool has_small_planes(const ConvConfig& c) {
  constexpr int64_t kMostPixels = 256;
  const int64_t pixels = c.height * c.width;
  return pixels >= kLanes && pixels <= kMostPixels && has_enough_pixels(c);
}

// Whether tiles then are whole ones. Of few input channels most of the time goes into the results,
// which a product writes in longer runs: 64 to 384 channels of 14x14 on an Emerald Rapids 1.3 times
// faster than tiles, 96 to 576 as fast. Nor where planes are whole vectors: a product of 256
// channels of 8x8, 12x12 and 16x16 is 1.3 to 1.5 times faster there.
bool are_points_tiles(int64_t inputs, int64_t outputs, const ConvConfig& c) {
  constexpr int64_t kLeastInputs = 96;
  const int64_t pixels = c.height * c.width;
  return has_small_planes(c) && pixels % kLanes != 0 && inputs >= kLeastInputs * c.groups &&
         (are_whole_tiles(outputs / c.groups, pixels) ||
          has_tiles_of_points(outputs / c.groups, pixels)) &&
         !are_streamed(c.batch * outputs, c);
}

// Of an axis, what ConvInputGradGeneral is told: step, period, common and inverse.
std::array<int64_t, 4> steps_of(int64_t stride, int64_t dilation) {
  const int64_t common = std::gcd(stride, dilation), step = dilation / common,
                period = stride / common;
  int64_t inverse = 0;
  while ((step * inverse - 1) % period != 0) ++inverse;
  return {step, period, common, inverse};
}

Plan plan_input_grad_general(const ConvConfig& c) {
  std::vector<HostArg> args = conv_geometry(c);
  args.insert(args.end(),
              {dense_operand(0, DType::kF32, y_shape(c)), dense_operand(1, DType::kF32, w_shape(c)),
               number(c.out_channels / c.groups)});
  const std::array<int64_t, 4> steps_h = steps_of(c.stride_h, c.dilation_h),
                               steps_w = steps_of(c.stride_w, c.dilation_w);
  for (const auto& steps : {steps_h, steps_w}) {
    for (const int64_t value : steps) args.emplace_back(number(value));
  }
  args.insert(args.end(),
              {number(ceil_div(c.kernel_h, steps_h[1])), number(ceil_div(c.kernel_w, steps_w[1]))});
  args.emplace_back(dense_operand(2, DType::kF32, x_shape(c)));
  Recorder recorder(kNoAliases);
  recorder.call(aot_kernel("conv_input_grad_general", DeviceClass::kGpu), "conv2d_input_grad",
                args);
  return recorder.finish();
}

// The same with further rows and columns of x that make it a multiple of the strides.
ConvConfig with_whole_strides(const ConvConfig& c) {
  ConvConfig longer = c;
  longer.height = ceil_div(c.height, c.stride_h) * c.stride_h;
  longer.width = ceil_div(c.width, c.stride_w) * c.stride_w;
  longer.bottom = (c.out_h() - 1) * c.stride_h + c.kernel_h - c.top - longer.height;
  longer.right = (c.out_w() - 1) * c.stride_w + c.kernel_w - c.left - longer.width;
  return longer;
}

// dx from that of such an x, which phases compute. With zeros between the elements of dy most of
// what is multiplied is zero: 384 to 288 channels of 4x35x35, 3x3 two apart, on a Zen 4 50 to 16
// ms.
Plan plan_input_grad_of_whole_strides(const ConvConfig& c) {
  const ConvConfig longer = with_whole_strides(c);
  return plan_conv2d_input_grad_moved(
      longer, plan_slice(DeviceClass::kCpu, {DType::kF32, x_shape(longer)},
                         {{0, 0, 0, 0}, {1, 1, 1, 1}}, {DType::kF32, x_shape(c)}));
}

// A work-item per weight and part of the sum: some rows of a sample.
Plan plan_weight_grad_general(const ConvConfig& c) {
  constexpr int64_t kItems = 1 << 16;  // that keep a GPU busy
  const Shape shape = w_shape(c);
  const int64_t weights = elements_of(shape),
                of_sample = ceil_div(kItems, weights * std::max<int64_t>(c.batch, 1));
  const int64_t rows = std::max<int64_t>(ceil_div(c.out_h(), of_sample), 1);
  const int64_t chunks = std::max<int64_t>(ceil_div(c.out_h(), rows), 1);
  const int64_t parts = std::max<int64_t>(c.batch * chunks, 1);
  std::vector<HostArg> args = conv_geometry(c);
  args.insert(args.end(), {dense_operand(0, DType::kF32, y_shape(c)),
                           dense_operand(1, DType::kF32, x_shape(c))});
  for (const int64_t value : {c.out_channels / c.groups, c.kernel_w, c.kernel_h,
                              c.in_channels / c.groups, rows, chunks}) {
    args.emplace_back(number(value));
  }
  args.emplace_back(dense_operand(2, DType::kF32, {parts, weights}));
  Recorder recorder(kNoAliases);
  recorder.call(aot_kernel("conv_weight_grad_general", DeviceClass::kGpu), "conv2d_weight_grad",
                args);
  return plan_sum_of_parts(DeviceClass::kGpu, recorder.finish(), parts, weights);
}

}  // namespace

int64_t ConvConfig::out_h() const {
  return out_extent(height, top, bottom, kernel_h, dilation_h, stride_h);
}
int64_t ConvConfig::out_w() const {
  return out_extent(width, left, right, kernel_w, dilation_w, stride_w);
}

// All three ask the folders beside this file, in the order of the table in docs/convolutions.md.
Plan plan_conv2d(DeviceClass device_class, const ConvConfig& c, const ConvEpilogue& e) {
  if (is_empty(y_shape(c))) return {};
  const bool is_cpu = device_class == DeviceClass::kCpu;
  if (!is_cpu && is_blocked(c) && !is_patches(c)) {
    return is_blocked_product(c, e) ? plan_conv2d_product(device_class, c, e)
                                    : plan_conv2d_blocks(c, e);
  }
  if (is_cpu && is_side_by_side(c)) return plan_conv2d_side_by_side(c, e);
  if (is_patches(c)) {
    const bool are_tiles =
        is_cpu && are_whole_tiles(c.out_channels / c.groups, c.out_h() * c.out_w());
    return are_tiles ? plan_conv2d_tiles(c, e) : plan_conv2d_patches(device_class, c, e);
  }
  if (is_cpu && is_picked(c)) return plan_conv2d_picked(c, e);
  if (is_cpu && is_winograd(c)) return plan_conv2d_winograd(c, e);
  if (is_cpu && is_dilated(c, e)) return plan_conv2d_dilated(c, e);
  if (is_product(device_class, c, e)) {
    const bool are_tiles = is_cpu && are_points_tiles(c.in_channels, c.out_channels, c) &&
                           (e.has_residual || !has_many_weights(c));
    return are_tiles ? plan_conv2d_tiles(c, e) : plan_conv2d_product(device_class, c, e);
  }
  if (is_cpu) {
    if (is_planes(c)) return plan_conv2d_planes(c, e);
    if (is_grouped(c)) return plan_conv2d_grouped(c, e);
    if (is_depthwise(c)) return plan_conv2d_depthwise(c, e);
    return c.out_channels / c.groups <= kFewChannels ? plan_conv2d_rows(c, e)
                                                     : plan_conv2d_tiles(c, e);
  }
  if (is_strips(c)) return plan_conv2d_strips(c, e);
  const EpilogueOperands terms(e, {c.out_channels});
  const Operand out = dense_operand(terms.out, DType::kF32, y_shape(c));
  std::vector<HostArg> args = conv_geometry(c);
  args.insert(args.end(), {dense_operand(0, DType::kF32, x_shape(c)),
                           dense_operand(1, DType::kF32, w_shape(c))});
  terms.append_to(args, out);
  args.insert(args.end(), {number(c.out_channels / c.groups), out});
  Recorder recorder(kNoAliases);
  recorder.call(aot_kernel("conv_general", device_class), "conv2d", args);
  return recorder.finish();
}

Plan plan_conv2d_input_grad(DeviceClass device_class, const ConvConfig& c) {
  if (is_empty(x_shape(c))) return {};
  const bool is_cpu = device_class == DeviceClass::kCpu;
  if (is_cpu && is_side_by_side_input_grad(c)) return plan_conv2d_input_grad_side_by_side(c);
  if (is_patches(c)) return plan_conv2d_input_grad_patches(device_class, c);
  if (!is_cpu && is_blocked_input_grad(c)) {
    return is_blocked_product(c) ? plan_conv2d_input_grad_product(device_class, c)
                                 : plan_conv2d_input_grad_blocks(c);
  }
  if (is_cpu && is_picked_input_grad(c)) {
    return plan_conv2d_input_grad_picked(c);
  }
  if (is_cpu && is_winograd_input_grad(c)) {
    return plan_conv2d_input_grad_winograd(c);
  }
  if (is_cpu && is_dilated_input_grad(c)) {
    return plan_conv2d_input_grad_dilated(c);
  }
  if (is_cpu && is_plane_phases_input_grad(c)) {
    return plan_conv2d_input_grad_plane_phases(c);
  }
  if (is_product(device_class, c)) {
    const bool prefers_tiles = is_cpu && are_points_tiles(c.out_channels, c.in_channels, c);
    return prefers_tiles ? plan_conv2d_input_grad_tiles(c)
                         : plan_conv2d_input_grad_product(device_class, c);
  }
  if (is_cpu) {
    if (is_planes_input_grad(c)) return plan_conv2d_input_grad_planes(c);
    if (is_couples_input_grad(c)) return plan_conv2d_input_grad_couples(c);
    if (is_depth_phases_input_grad(c)) return plan_conv2d_input_grad_depth_phases(c);
    if (is_grouped_input_grad(c)) return plan_conv2d_input_grad_grouped(c);
    if (is_depthwise_input_grad(c)) return plan_conv2d_input_grad_depthwise(c);
    const bool is_split = c.height % c.stride_h == 0 && c.width % c.stride_w == 0;
    if (has_strides(c) && c.dilation_h == 1 && c.dilation_w == 1 && !is_empty(y_shape(c))) {
      return is_split ? plan_conv2d_input_grad_strided(c) : plan_input_grad_of_whole_strides(c);
    }
    return c.in_channels / c.groups <= kFewChannels ? plan_conv2d_input_grad_rows(c)
                                                    : plan_conv2d_input_grad_tiles(c);
  }
  return is_strips_input_grad(c) ? plan_conv2d_input_grad_strips(c) : plan_input_grad_general(c);
}

Plan plan_conv2d_weight_grad(DeviceClass device_class, const ConvConfig& c) {
  if (is_empty(w_shape(c))) return {};
  const bool is_cpu = device_class == DeviceClass::kCpu;
  if (!is_cpu && is_blocked(c)) return plan_conv2d_weight_grad_blocks(c);
  if (is_patches(c)) {
    return is_cpu && are_patches_tiles(c) ? plan_conv2d_weight_grad_tiles(c)
                                          : plan_conv2d_weight_grad_patches(device_class, c);
  }
  if (is_cpu && is_picked_weight_grad(c)) return plan_conv2d_weight_grad_picked(c);
  if (is_product(device_class, c)) {
    // Tiles read x where it lies, which a product packs: of many channels to fewer, of up to 512
    // to as many, and in small planes, 1.03 to 1.4 times faster on a Zen 4; of few pixels slower
    // (512 to 2048 channels of 7x7 on an Emerald Rapids 1.2 times, 96 to 576 of 10x10 1.2).
    constexpr int64_t kFewPixels = 128, kMostEqual = 512;
    const bool are_no_more = c.out_channels < c.in_channels ||
                             (c.out_channels == c.in_channels && c.in_channels <= kMostEqual);
    const bool is_small = has_small_planes(c) && c.height * c.width > kFewPixels;
    if (is_cpu && has_enough_pixels(c) && c.height * c.width > kFewPixels &&
        is_swapped_weight_grad(c)) {
      return plan_conv2d_weight_grad_swapped(c);
    }
    const bool prefers_tiles =
        is_cpu && has_wide_registers() && (are_no_more ? has_enough_pixels(c) : is_small);
    return prefers_tiles ? plan_conv2d_weight_grad_tiles(c)
                         : plan_conv2d_weight_grad_product(device_class, c);
  }
  if (is_cpu) {
    if (has_few_windows(c)) return plan_conv2d_weight_grad_patches(device_class, c);
    if (is_winograd_weight_grad(c)) return plan_conv2d_weight_grad_winograd(c);
    if (is_dilated_weight_grad(c)) return plan_conv2d_weight_grad_dilated(c);
    if (is_grouped_weight_grad(c)) return plan_conv2d_weight_grad_grouped(c);
    if (is_depthwise_weight_grad(c)) return plan_conv2d_weight_grad_depthwise(c);
    return c.out_channels / c.groups <= kFewChannels ? plan_conv2d_weight_grad_rows(c)
                                                     : plan_conv2d_weight_grad_tiles(c);
  }
  return is_strips_weight_grad(c) ? plan_conv2d_weight_grad_strips(c) : plan_weight_grad_general(c);
}

}  // namespace ballast::kernels
