#include "kernels/plan_builder.h"

namespace ballast::kernels {

uint32_t PlanBuilder::add_region(uint64_t bytes) {
  const uint64_t offset = result_.workspace_bytes;
  const uint64_t pieces = bytes / kRegionAlignment + 1;  // a byte at least: no empty workspace
  result_.regions.push_back({offset, bytes});
  result_.workspace_bytes = offset + pieces * kRegionAlignment;
  return first_region_ + static_cast<uint32_t>(result_.regions.size()) - 1;
}

void PlanBuilder::append(const Plan& plan, std::vector<uint32_t> slots) {
  if (plan.workspace_bytes > 0) {
    const uint64_t start = result_.workspace_bytes;
    slots.push_back(add_region(plan.workspace_bytes));
    for (const Region& region : plan.regions) {
      slots.push_back(first_region_ + static_cast<uint32_t>(result_.regions.size()));
      result_.regions.push_back({start + region.offset, region.bytes});
    }
  }
  for (device::Launch launch : plan.launches) {
    for (device::Arg& arg : launch.args) {
      if (arg.kind == device::Arg::Kind::kBuffer) arg.slot = slots.at(arg.slot);
    }
    result_.launches.push_back(std::move(launch));
  }
}

}  // namespace ballast::kernels
