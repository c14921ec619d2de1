#include "kernels/conv/winograd/conv_dilated.h"

#include "kernels/conv/conv_arguments.h"
#include "kernels/conv/winograd/conv_winograd.h"
#include "kernels/conv/winograd/conv_winograd_weight.h"
#include "kernels/plan/halide_runtime.h"
#include "kernels/plan/plan_builder.h"
#include "kernels/shape/region.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace ballast::kernels {
namespace {

// Row y, column x of a plane is row y / dilation, column x / dilation of the phase that has those
// with the same remainders. Phases are samples: (phase of rows, of columns, sample of c).
ConvConfig of_phases(const ConvConfig& c) {
  ConvConfig phases = c;
  phases.batch = c.batch * c.dilation_h * c.dilation_w;
  phases.height = ceil_div(c.height, c.dilation_h), phases.width = ceil_div(c.width, c.dilation_w);
  phases.top = c.top / c.dilation_h, phases.left = c.left / c.dilation_w;
  phases.dilation_h = phases.dilation_w = 1;
  // As many results as the longest phase has.
  phases.bottom = ceil_div(c.out_h(), c.dilation_h) + c.kernel_h - 1 - phases.top - phases.height;
  phases.right = ceil_div(c.out_w(), c.dilation_w) + c.kernel_w - 1 - phases.left - phases.width;
  return phases;
}

// Planes [batch, channels, height, width] as such phases.
class PhasePlanes {
 public:
  PhasePlanes(const ConvConfig& c, int64_t channels, int64_t height, int64_t width)
      : planes_(c.batch * channels),
        height_(height),
        width_(width),
        down_(c.dilation_h),
        across_(c.dilation_w) {}

  int64_t floats() const { return down_ * across_ * planes_ * phase(); }

  // From slot 0 to slot 1: out of the planes, with zeros where a phase has a row or column less
  // than others, or back.
  Plan copy(bool is_back) const {
    Recorder recorder;
    const bool is_even = height_ % down_ == 0 && width_ % across_ == 0;
    if (!is_back && !is_even) {
      record_fill(recorder, DeviceClass::kCpu, sizeof(float), {floats()}, {}, {1, 0, {1}});
    }
    // Those of a row that have as many columns, as often of a plane that have as many rows.
    for (const Some& rows : parted(height_, down_)) {
      for (const Some& columns : parted(width_, across_)) {
        View apart{0,
                   rows.first * width_ + columns.first,
                   {width_, 1, height_ * width_, down_ * width_, across_}};
        View together{0,
                      (rows.first * across_ + columns.first) * planes_ * phase(),
                      {across_ * planes_ * phase(), planes_ * phase(), phase(), phase_w(), 1}};
        (is_back ? apart : together).slot = 1;
        record_copy(recorder, DeviceClass::kCpu, sizeof(float),
                    {rows.phases, columns.phases, planes_, rows.extent, columns.extent},
                    is_back ? together : apart, is_back ? apart : together);
      }
    }
    return recorder.finish();
  }

 private:
  // Phases first, first + 1, ... of one extent.
  struct Some {
    int64_t first, phases, extent;
  };
  static std::vector<Some> parted(int64_t extent, int64_t dilation) {
    const int64_t longer = extent % dilation;
    std::vector<Some> all;
    if (longer > 0) all.push_back({0, longer, extent / dilation + 1});
    all.push_back({longer, dilation - longer, extent / dilation});
    return all;
  }
  int64_t phase_w() const { return ceil_div(width_, across_); }
  int64_t phase() const { return ceil_div(height_, down_) * phase_w(); }

  int64_t planes_, height_, width_, down_, across_;
};

PhasePlanes of_x(const ConvConfig& c) { return {c, c.in_channels, c.height, c.width}; }
PhasePlanes of_y(const ConvConfig& c) { return {c, c.out_channels, c.out_h(), c.out_w()}; }

// `plan` of the phases, which have operand 0 in `in`, and the result, the last of so many operands,
// in `out`.
Plan between_phases(uint32_t operands, const PhasePlanes& in, const PhasePlanes& out,
                    const Plan& plan) {
  PlanBuilder builder(operands);
  const uint32_t last = operands - 1;
  std::vector<uint32_t> slots(operands);
  std::iota(slots.begin(), slots.end(), 0);
  slots[0] = builder.add_floats(in.floats());
  slots[last] = builder.add_floats(out.floats());
  builder.append(in.copy(false), {0, slots[0]});
  builder.append(plan, slots);
  builder.append(out.copy(true), {slots[last], last});
  return builder.finish();
}

bool has_phases(const ConvConfig& c) {
  // Else copying is too much of the time, of short rows an element at a time.
  constexpr int64_t kShort = 8, kLeast = 32, kLeastOfShort = 128;
  const int64_t least = c.width / c.dilation_w < kShort ? kLeastOfShort : kLeast;
  return (c.dilation_h > 1 || c.dilation_w > 1) && c.stride_h == 1 && c.stride_w == 1 &&
         c.top % c.dilation_h == 0 && c.left % c.dilation_w == 0 && c.out_h() > 0 &&
         c.out_w() > 0 && std::min(c.in_channels, c.out_channels) >= least * c.groups;
}

}  // namespace

bool is_dilated(const ConvConfig& c, const ConvEpilogue& e) {
  return has_phases(c) && !e.has_residual && is_winograd(of_phases(c));
}
bool is_dilated_input_grad(const ConvConfig& c) {
  return has_phases(c) && is_winograd_input_grad(of_phases(c));
}
bool is_dilated_weight_grad(const ConvConfig& c) {
  return has_phases(c) && is_winograd_weight_grad(of_phases(c));
}

Plan plan_conv2d_dilated(const ConvConfig& c, const ConvEpilogue& e) {
  const uint32_t out = EpilogueOperands(e, {c.out_channels}).out;
  return between_phases(out + 1, of_x(c), of_y(c), plan_conv2d_winograd(of_phases(c), e));
}

Plan plan_conv2d_input_grad_dilated(const ConvConfig& c) {
  return between_phases(3, of_y(c), of_x(c), plan_conv2d_input_grad_winograd(of_phases(c)));
}

Plan plan_conv2d_weight_grad_dilated(const ConvConfig& c) {
  PlanBuilder builder(3);
  const uint32_t dy = builder.add_floats(of_y(c).floats()),
                 x = builder.add_floats(of_x(c).floats());
  builder.append(of_y(c).copy(false), {0, dy});
  builder.append(of_x(c).copy(false), {1, x});
  builder.append(plan_conv2d_weight_grad_winograd(of_phases(c)), {dy, x, 2});
  return builder.finish();
}

}  // namespace ballast::kernels
