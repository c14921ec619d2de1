#include "kernels/widen.h"

#include "kernels/pointwise/pointwise.h"

namespace ballast::kernels {
namespace {

class Widening {
 public:
  explicit Widening(size_t operands) : first_region_(static_cast<uint32_t>(operands) + 1) {}

  // A part of the workspace and its slot.
  uint32_t add_region(uint64_t bytes) {
    const uint64_t offset = result_.workspace_bytes;
    const uint64_t pieces = bytes / kRegionAlignment + 1;  // a byte at least: no empty workspace
    result_.regions.push_back({offset, bytes});
    result_.workspace_bytes = offset + pieces * kRegionAlignment;
    return first_region_ + static_cast<uint32_t>(result_.regions.size()) - 1;
  }

  // A region of a workspace that begins at `start` of this one.
  uint32_t add_nested(uint64_t start, const Region& region) {
    result_.regions.push_back({start + region.offset, region.bytes});
    return first_region_ + static_cast<uint32_t>(result_.regions.size()) - 1;
  }

  // `slots[i]` is where slot i of `plan` lies here.
  void append(const Plan& plan, const std::vector<uint32_t>& slots) {
    for (device::Launch launch : plan.launches) {
      for (device::Arg& arg : launch.args) {
        if (arg.kind == device::Arg::Kind::kBuffer) arg.slot = slots.at(arg.slot);
      }
      result_.launches.push_back(std::move(launch));
    }
  }

  uint64_t bytes() const { return result_.workspace_bytes; }
  Plan finish() { return std::move(result_); }

 private:
  uint32_t first_region_;
  Plan result_;
};

}  // namespace

Plan widen(DeviceClass device_class, const std::vector<WidenedOperand>& inputs,
           const std::vector<WidenedOperand>& outputs, Plan plan) {
  const size_t count = inputs.size() + outputs.size();
  Widening widening(count);
  std::vector<uint32_t> slots;
  std::vector<std::pair<Plan, std::vector<uint32_t>>> casts_back;
  for (size_t i = 0; i < count; ++i) {
    const bool is_input = i < inputs.size();
    const WidenedOperand& operand = is_input ? inputs[i] : outputs[i - inputs.size()];
    const auto own = static_cast<uint32_t>(i);
    slots.push_back(own);
    if (operand.stored.dtype == operand.wide.dtype) continue;
    slots.back() = widening.add_region(operand.wide.bytes());
    if (is_input) {
      widening.append(plan_pointwise(device_class, "cast", {operand.stored}, operand.wide),
                      {own, slots.back()});
    } else {
      casts_back.emplace_back(plan_pointwise(device_class, "cast", {operand.wide}, operand.stored),
                              std::vector<uint32_t>{slots.back(), own});
    }
  }
  if (plan.workspace_bytes > 0) {
    const uint64_t start = widening.bytes();
    slots.push_back(widening.add_region(plan.workspace_bytes));
    for (const Region& region : plan.regions) slots.push_back(widening.add_nested(start, region));
  }
  widening.append(plan, slots);
  for (const auto& [cast, cast_slots] : casts_back) widening.append(cast, cast_slots);
  return widening.finish();
}

}  // namespace ballast::kernels
