#include "kernels/conv/conv_operands.h"

#include "kernels/conv/conv_arguments.h"
#include "kernels/recipe/lanes.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace ballast::kernels {
namespace {

// That of 9 taps is for 3x3 of three channels, the last one for 16 registers of 8 lanes.
constexpr ConvTile kTiles[] = {{6, 4, 1 / 240.0}, {8, 3, 1 / 240.0},  {12, 2, 1 / 225.0},
                               {9, 2, 1 / 225.0}, {12, 1, 1 / 160.0}, {6, 1, 1 / 121.0}};

// Surrounds (and with strides, intersperses) the planes of dense f32 [batch, channels, height,
// width] in `slot` with zeros so that they are padded_h x padded_w, or hands them back as they are
// where that changes nothing. `top` and `left` may be negative: rows and columns are dropped.
struct Padding {
  int64_t top = 0, left = 0, stride_h = 1, stride_w = 1, padded_h = 0, padded_w = 0;
};
PaddedPlanes pad_planes(Recorder& recorder, Workspace& scratch, uint32_t slot, const Shape& shape,
                        const Padding& padding) {
  const int64_t height = shape[2], width = shape[3], count = shape[0] * shape[1];
  const bool is_same = padding.top == 0 && padding.left == 0 && padding.stride_h == 1 &&
                       padding.stride_w == 1 && padding.padded_h <= height &&
                       padding.padded_w <= width;
  const int64_t plane = padding.padded_h * padding.padded_w;
  if (is_same) return {slot, width, height * width, shape[1] * height * width};
  const uint32_t target = scratch.add_floats(plane * count);
  recorder.call("conv_pad", DeviceClass::kCpu,
                {number(padding.top), number(padding.left), number(padding.stride_h),
                 number(padding.stride_w), number(planes_per_group(plane, count)),
                 dense_operand(slot, DType::kF32, {count, height, width}),
                 dense_operand(target, DType::kF32, {count, padding.padded_h, padding.padded_w})});
  return {target, padding.padded_w, plane, shape[1] * plane};
}

}  // namespace

const ConvTile& choose_conv_tile(int64_t lanes, int64_t count) {
  const auto ns = [&](const ConvTile& t) {
    return double(ceil_div(lanes, t.lanes()) * t.lanes() * ceil_div(count, t.broadcast) *
                  t.broadcast) *
           t.fma_ns * spilling_penalty(t.sums());
  };
  return *std::min_element(std::begin(kTiles), std::end(kTiles),
                           [&](const ConvTile& a, const ConvTile& b) { return ns(a) < ns(b); });
}

PackedPanels pack_panels(Recorder& recorder, Workspace& scratch, const ConvTile& tile,
                         const Operand& source, const TapOrder& order) {
  const int64_t kernel_w = source.extents[1], kernel_h = source.extents[2],
                taps = kernel_w * kernel_h * source.extents[3], width = tile.lanes();
  const int64_t panels = ceil_div(source.extents[0], width), all = panels * source.extents[4];
  const Operand packed{scratch.add_floats(width * taps * all),
                       DType::kF32,
                       {kLanes, tile.vectors, taps, all},
                       {1, kLanes, width, width * taps},
                       {}};
  const int64_t plane = kernel_w * kernel_h, images = source.extents[3];
  const bool is_contiguous = source.strides[1] == 1 && order.is_plain() &&
                             (kernel_h == 1 || source.strides[2] == kernel_w);
  // Where images follow one another, they are one.
  const bool is_one = is_contiguous && (images == 1 || source.strides[3] == plane);
  const int64_t length = is_one ? taps : plane;
  if (is_contiguous && length >= kLanes) {
    recorder.call(
        "conv_pack_columns", DeviceClass::kCpu,
        {number(tile.vectors), number(panels),
         Operand{source.slot,
                 DType::kF32,
                 {length, source.extents[0], is_one ? 1 : images, source.extents[4]},
                 {1, source.strides[0], is_one ? 0 : source.strides[3], source.strides[4]},
                 {}},
         packed});
    return {panels, packed};
  }
  recorder.call(
      "conv_pack", DeviceClass::kCpu,
      {number(order.first_x), number(order.step_x), number(order.first_y), number(order.step_y),
       number(kernel_h), number(kernel_w), number(tile.vectors), number(panels), source, packed});
  return {panels, packed};
}

PaddedPlanes pad_input(Recorder& recorder, Workspace& scratch, uint32_t slot, const ConvConfig& c,
                       int64_t least_h, int64_t least_w) {
  Padding padding{c.top, c.left};
  padding.padded_h =
      std::max(least_h, (c.out_h() - 1) * c.stride_h + (c.kernel_h - 1) * c.dilation_h + 1);
  padding.padded_w =
      std::max(least_w, (c.out_w() - 1) * c.stride_w + (c.kernel_w - 1) * c.dilation_w + 1);
  return pad_planes(recorder, scratch, slot, {c.batch, c.in_channels, c.height, c.width}, padding);
}

PaddedPlanes pad_gradient(Recorder& recorder, Workspace& scratch, uint32_t slot,
                          const ConvConfig& c, int64_t top, int64_t left, int64_t padded_h,
                          int64_t padded_w) {
  return pad_planes(recorder, scratch, slot, {c.batch, c.out_channels, c.out_h(), c.out_w()},
                    {top, left, 1, 1, padded_h, padded_w});
}

PaddedPlanes pad_gradient(Recorder& recorder, Workspace& scratch, uint32_t slot,
                          const ConvConfig& c) {
  Padding padding{(c.kernel_h - 1) * c.dilation_h - c.top, (c.kernel_w - 1) * c.dilation_w - c.left,
                  c.stride_h, c.stride_w};
  padding.padded_h = c.height + (c.kernel_h - 1) * c.dilation_h;
  padding.padded_w = c.width + (c.kernel_w - 1) * c.dilation_w;
  return pad_planes(recorder, scratch, slot, {c.batch, c.out_channels, c.out_h(), c.out_w()},
                    padding);
}

int64_t planes_per_group(int64_t elements, int64_t planes) {
  constexpr int64_t kGroupElements = 32768, kGroups = 16;
  return std::clamp<int64_t>(kGroupElements / (elements + 1), 1,
                             std::max<int64_t>(1, planes / kGroups));
}

int64_t lanes_of_row(int64_t elements) {
  for (int64_t lanes : {16, 8, 4}) {
    if (elements >= lanes) return lanes;
  }
  return 0;
}

void weave_phases(Recorder& recorder, const ConvConfig& c, const Operand& phases) {
  const int64_t across = c.width / c.stride_w, down = c.height / c.stride_h,
                count = c.batch * c.in_channels, plane = c.height * c.width;
  const int64_t lanes = lanes_of_row(across);
  if (c.stride_w == 2 && lanes > 0) {
    recorder.call(fmt::format("conv_weave_{}", lanes), DeviceClass::kCpu,
                  {number(planes_per_group(plane, count)), phases,
                   Operand{2,
                           DType::kF32,
                           {c.width, c.stride_h, down, count},
                           {1, c.width, c.stride_h * c.width, plane},
                           {}}});
    return;
  }
  recorder.call(
      "conv_gather", DeviceClass::kCpu,
      {number(0), number(0), number(c.stride_h), number(c.stride_w), number(1), number(1), phases,
       Operand{2,
               DType::kF32,
               {across, c.stride_w, down, c.stride_h, count},
               {c.stride_w, 1, c.stride_h * c.width, c.width, plane},
               {}}});
}

PackedPanels pack_gradient(Recorder& recorder, Workspace& scratch, const ConvTile& tile,
                           const ConvConfig& c) {
  const int64_t lanes = c.out_channels / c.groups, pixels = c.out_h() * c.out_w();
  return pack_panels(recorder, scratch, tile,
                     {0,
                      DType::kF32,
                      {lanes, pixels, 1, c.batch, c.groups},
                      {pixels, 1, 0, c.out_channels * pixels, lanes * pixels},
                      {}},
                     {});
}

}  // namespace ballast::kernels
