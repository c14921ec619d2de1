// Many small launches as few: launches of one kernel that do not depend on each other become one
// launch of up to kMergedLaunches times the groups, in which the group's number selects the
// arguments. Each does what it did, bit for bit.
//
// Plain values; any thread. Texts are made once per kernel.
#pragma once

#include "kernels/plan.h"

#include <vector>

namespace ballast::kernels {

constexpr size_t kMergedLaunches = 8;

// The order of the result is that of the first launch of each kernel. Only one-dimensional launches
// are merged.
std::vector<device::Launch> merge_launches(const std::vector<device::Launch>& launches);

}  // namespace ballast::kernels
