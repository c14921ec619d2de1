#include "kernels/plan/plan_builder.h"

namespace ballast::kernels {

void PlanBuilder::append(const Plan& plan, std::vector<uint32_t> slots) {
  if (plan.workspace_bytes > 0) {
    const uint64_t start = workspace_.bytes();
    slots.push_back(workspace_.add(plan.workspace_bytes));
    for (const Region& region : plan.regions) {
      slots.push_back(workspace_.add_part(start + region.offset, region.bytes));
    }
  }
  for (device::Launch launch : plan.launches) {
    for (device::Arg& arg : launch.args) {
      if (arg.kind == device::Arg::Kind::kBuffer) arg.slot = slots.at(arg.slot);
    }
    launches_.push_back(std::move(launch));
  }
}

}  // namespace ballast::kernels
