#include "kernels/conv/depthwise/conv_depth_blocks.h"

#include "kernels/conv/depthwise/conv_depth.h"
#include "kernels/conv/depthwise/conv_depth_operands.h"
#include "kernels/plan/registers.h"
#include "kernels/recipe/lanes.h"

#include <fmt/format.h>

#include <vector>

namespace ballast::kernels {
namespace {

using namespace depth;

// Of which the manifest has kernels.
bool is_square(const ConvConfig& c) { return are_all(14, {c.height, c.width}); }

// y, or dx, which is that of flipped windows.
Plan plan(const ConvConfig& c, const ConvEpilogue& e, bool is_flipped) {
  const EpilogueOperands terms = terms_of(c, e);
  Recorder recorder(kDirectAccess);
  call_with_epilogue(recorder,
                     fmt::format("conv_depth_blocks_{}{}", c.kernel_w, is_square(c) ? "_14" : ""),
                     {number(c.width), number(c.height), flat_planes(0, c),
                      number(planes_of_group(c, 1)), number(is_flipped), weights(1, c)},
                     terms, channel_planes(terms.out, c));
  return recorder.finish();
}

}  // namespace

bool is_of_blocks(const ConvConfig& c) {
  if (!has_wide_registers()) return false;
  if (!(is_same(c, 5) || is_same(c, 7)) || !has_one_channel(c)) return false;
  const int64_t reach = c.kernel_w / 2, pitch = depth_blocks_pitch(static_cast<int>(c.kernel_w)),
                held = (c.height + 2 * reach) * pitch + 2 * kLanes;
  return is_square(c) || (c.width > kLanes && c.width + reach <= pitch &&
                          c.height >= kDepthBlockRows && held <= kDepthBlocksElements);
}

Plan plan_conv2d_depth_blocks(const ConvConfig& c, const ConvEpilogue& e) {
  return plan(c, e, false);
}

Plan plan_conv2d_input_grad_depth_blocks(const ConvConfig& c) { return plan(c, {}, true); }

}  // namespace ballast::kernels
