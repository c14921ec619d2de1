#include "kernels/plan/widen.h"

#include "kernels/plan/plan_builder.h"
#include "kernels/pointwise/pointwise.h"

namespace ballast::kernels {
Plan widen(DeviceClass device_class, const std::vector<WidenedOperand>& inputs,
           const std::vector<WidenedOperand>& outputs, Plan plan) {
  const size_t count = inputs.size() + outputs.size();
  PlanBuilder builder(count);
  std::vector<uint32_t> slots;
  std::vector<std::pair<Plan, std::vector<uint32_t>>> casts_back;
  for (size_t i = 0; i < count; ++i) {
    const bool is_input = i < inputs.size();
    const WidenedOperand& operand = is_input ? inputs[i] : outputs[i - inputs.size()];
    const auto own = static_cast<uint32_t>(i);
    slots.push_back(own);
    if (operand.stored.dtype == operand.wide.dtype) continue;
    slots.back() = builder.add_region(operand.wide.bytes());
    if (is_input) {
      builder.append(plan_pointwise(device_class, "cast", {operand.stored}, operand.wide),
                     {own, slots.back()});
    } else {
      casts_back.emplace_back(plan_pointwise(device_class, "cast", {operand.wide}, operand.stored),
                              std::vector<uint32_t>{slots.back(), own});
    }
  }
  builder.append(plan, slots);
  for (const auto& [cast, cast_slots] : casts_back) builder.append(cast, cast_slots);
  return builder.finish();
}

}  // namespace ballast::kernels
