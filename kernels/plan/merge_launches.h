// Many small launches as few: launches of one kernel that do not depend on each other become one
// launch of all their groups, in which the group's number selects the arguments. Each does what it
// did, bit for bit.
//
// Plain values; any thread. Texts are made once per kernel.
#pragma once

#include "kernels/plan/plan.h"

#include <vector>

namespace ballast::kernels {

constexpr size_t kMergedLaunches = 8;

// Launches of one dimension, the groups of one after those of the other; or of any, where each is
// given its next group in turn, so that what a core works on lies together if its parts do.
enum class GroupOrder { kOneByOne, kInTurn };

// At most `width` become one; there is a source per width. The order of the result is that of the
// first launch of each kernel.
std::vector<device::Launch> merge_launches(const std::vector<device::Launch>& launches,
                                           GroupOrder order = GroupOrder::kOneByOne,
                                           size_t width = kMergedLaunches);

}  // namespace ballast::kernels
