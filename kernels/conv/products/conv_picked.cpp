#include "kernels/conv/products/conv_picked.h"

#include "kernels/conv/conv_arguments.h"
#include "kernels/conv/conv_operands.h"
#include "kernels/conv/conv_problem.h"
#include "kernels/conv/products/conv_moved.h"
#include "kernels/conv/products/conv_products.h"
#include "kernels/conv/tiles/conv_tiles.h"
#include "kernels/plan/plan_builder.h"
#include "kernels/plan/registers.h"
#include "kernels/shape/shape.h"

#include <fmt/format.h>

namespace ballast::kernels {
namespace {

// The convolution of the pixels that c reads.
ConvConfig of_pixels(const ConvConfig& c) {
  ConvConfig pixels = c;
  pixels.height = c.out_h(), pixels.width = c.out_w();
  pixels.stride_h = pixels.stride_w = 1;
  return pixels;
}

// Those of x, from slot 0 to slot 1.
Plan pick(const ConvConfig& c) {
  const TensorType all{DType::kF32, x_shape(c)}, pixels{DType::kF32, x_shape(of_pixels(c))};
  return plan_slice(DeviceClass::kCpu, all, {{0, 0, 0, 0}, {1, 1, c.stride_h, c.stride_w}}, pixels);
}

// dx, in slot 1, from those of it in slot 0, with zeros between them.
Plan spread(const ConvConfig& c) {
  const int64_t plane = c.height * c.width, planes = c.batch * c.in_channels, down = c.out_h(),
                across = c.out_w(), lanes = lanes_of_row(across);
  if (lanes == 0 || c.stride_w != 2 || c.width % 2 != 0 || c.height % c.stride_h != 0) {
    const TensorType pixels{DType::kF32, x_shape(of_pixels(c))}, all{DType::kF32, x_shape(c)};
    return plan_embed(DeviceClass::kCpu, pixels, {{0, 0, 0, 0}, {1, 1, c.stride_h, c.stride_w}}, 0,
                      all);
  }
  Recorder recorder;
  recorder.call(fmt::format("conv_spread_{}", lanes), DeviceClass::kCpu,
                {number(planes_per_group(plane, planes)),
                 dense_operand(0, DType::kF32, {planes, 1, 1, down, across}),
                 Operand{1,
                         DType::kF32,
                         {c.width, c.stride_h, down, planes},
                         {1, c.width, c.stride_h * c.width, plane},
                         {}}});
  return recorder.finish();
}

bool are_some_pixels(const ConvConfig& c) {
  ConvConfig all = c;
  all.stride_h = all.stride_w = 1;
  return reads_pixels_in_order(all) && !reads_pixels_in_order(c) && elements_of(x_shape(c)) > 0 &&
         elements_of(y_shape(c)) > 0;
}

}  // namespace

// Tiles of 2 cores of a Zen 4 are up to 1.3 times faster than picking x first where they are full,
// and 2.4 to 3 times slower of 24 output channels, or 16 input channels. On an Emerald Rapids,
// whose tiles of pixels side by side gain more, picking is as fast or faster: 256 to 512 channels
// of 8x56x56 10.5 to 7.2 ms, 1024 to 2048 of 14x14 9.8 to 7.1, 64 to 128 of 56x56 0.71 to 0.54.
bool is_picked(const ConvConfig& c) {
  const int64_t outputs = group_outputs(c);
  const ConvTile& tile = choose_conv_tile(outputs, c.out_h() * c.out_w());
  const bool are_tiles =
      tile.vectors >= 2 && fills_tiles(outputs, tile.lanes()) && group_inputs(c) >= kTilesChannels;
  return are_some_pixels(c) && lanes_of_row(c.out_w()) > 0 &&
         !(halves_wide_registers() && are_tiles);
}

bool is_picked_input_grad(const ConvConfig& c) { return are_some_pixels(c); }

// Tiles read one pixel of x after the other, of every other one but half of each line. On an
// Emerald Rapids 1024 to 2048 channels of 8x14x14 went from 9.4 to 6.3 ms, 512 to 1024 of 28x28
// from 7.5 to 6.5, 128 to 256 from 0.57 to 0.53; with larger planes copying costs as much, or a
// sixth more. With AVX2, where more tiles of fewer channels each read x, it gains of any: on a Zen
// 3 256 to 512 of 8x56x56 23 to 12.5 ms, 1024 to 2048 of 14x14 19 to 12, 64 to 128 of 56x56 1.3 to
// 0.8.
bool is_picked_weight_grad(const ConvConfig& c) {
  constexpr int64_t kMostPixels = 256;
  if (!are_some_pixels(c) || c.groups != 1) return false;
  return !has_wide_registers() || (has_wide_units() && c.out_h() * c.out_w() <= kMostPixels);
}

Plan plan_conv2d_picked(const ConvConfig& c, const ConvEpilogue& e) {
  return plan_conv2d_moved(pick(c), of_pixels(c), e);
}

Plan plan_conv2d_input_grad_picked(const ConvConfig& c) {
  return plan_conv2d_input_grad_moved(of_pixels(c), spread(c));
}

Plan plan_conv2d_weight_grad_picked(const ConvConfig& c) {
  const ConvConfig pixels = of_pixels(c);
  PlanBuilder builder(3);
  const uint32_t x = builder.add_floats(elements_of(x_shape(pixels)));
  builder.append(pick(c), {1, x});
  builder.append(plan_conv2d_weight_grad(DeviceClass::kCpu, pixels), {0, x, 2});
  return builder.finish();
}

}  // namespace ballast::kernels
