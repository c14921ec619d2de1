#include "kernels/conv/depthwise/conv_depth_couples.h"

#include "kernels/conv/depthwise/conv_depth_in_place.h"
#include "kernels/conv/depthwise/conv_depth_operands.h"
#include "kernels/plan/registers.h"
#include "kernels/recipe/lanes.h"

#include <fmt/format.h>

#include <algorithm>

namespace ballast::kernels {
namespace {

using namespace depth;

constexpr int64_t kReach = 2;  // of the window

int64_t shorter_row(const ConvConfig& c) { return std::min(c.out_w(), c.width / 2); }
int64_t lanes_of(const ConvConfig& c) {
  return has_wide_registers() && shorter_row(c) >= kLanes ? kLanes : kLanes / 2;
}

// `rows` couples of rows are a block, for which dy lies in rows `pitch` apart.
struct Cut {
  int64_t rows, pitch;
};
Cut cut_rows(const ConvConfig& c) {
  const int64_t lanes = lanes_of(c), longer = std::max(c.out_w(), c.width / 2),
                pitch = ceil_div(longer + kReach, lanes) * lanes;
  const int64_t all = c.height / 2, most = kDepthCouplesElements / pitch - kReach;
  return {most > 0 ? ceil_div(all, ceil_div(all, most)) : 0, pitch};
}

}  // namespace

bool is_couples_input_grad(const ConvConfig& c) {
  return is_two_apart(c, 5) && are_all(0, {c.height % 2, c.width % 2}) &&
         std::max(c.top, c.left) <= kReach && shorter_row(c) >= kLanes / 2 && c.out_h() > 0 &&
         cut_rows(c).rows > 0 && !is_in_place_input_grad(c);
}

Plan plan_conv2d_input_grad_couples(const ConvConfig& c) {
  const Cut cut = cut_rows(c);
  const bool are_even = are_all(0, {c.top % 2, c.left % 2});
  Recorder recorder(kDirectAccess);
  recorder.call(
      fmt::format("conv_depth_couples_{}{}", lanes_of(c), are_even ? "_even" : ""),
      DeviceClass::kCpu,
      {number(c.width), number(c.out_w()), number(c.top), number(c.left), number(cut.rows),
       number((cut.rows + kReach) * cut.pitch), number(cut.pitch), number(planes_of_group(c, 1)),
       flat_results(0, c), windows(1, c), flat_planes(2, c)});
  return recorder.finish();
}

}  // namespace ballast::kernels
