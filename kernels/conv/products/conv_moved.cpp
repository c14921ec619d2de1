#include "kernels/conv/products/conv_moved.h"

#include "kernels/conv/conv_arguments.h"
#include "kernels/conv/conv_operands.h"
#include "kernels/plan/plan_builder.h"

#include <numeric>
#include <vector>

namespace ballast::kernels {

Plan plan_conv2d_moved(const Plan& move, const ConvConfig& moved, const ConvEpilogue& e) {
  const uint32_t y = EpilogueOperands(e, {moved.out_channels}).out;
  PlanBuilder builder(y + 1);
  std::vector<uint32_t> slots(y + 1);
  std::iota(slots.begin(), slots.end(), 0);
  slots[0] = builder.add_floats(elements_of(x_shape(moved)));
  builder.append(move, {0, slots[0]});
  builder.append(plan_conv2d(DeviceClass::kCpu, moved, e), slots);
  return builder.finish();
}

Plan plan_conv2d_input_grad_moved(const ConvConfig& moved, const Plan& back) {
  PlanBuilder builder(3);
  const uint32_t dx = builder.add_floats(elements_of(x_shape(moved)));
  builder.append(plan_conv2d_input_grad(DeviceClass::kCpu, moved), {0, 1, dx});
  builder.append(back, {dx, 2});
  return builder.finish();
}

}  // namespace ballast::kernels
