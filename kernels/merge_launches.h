// Many small launches as few: launches of one kernel that do not depend on each other become one
// launch of all their groups, in which the group's number selects the arguments. Each does what it
// did, bit for bit.
//
// Plain values; any thread. Texts are made once per kernel.
#pragma once

#include "kernels/plan.h"

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

// Launches of different kernels with equally many work-items in a group become one. The groups of
// `second` come after those of `first` along the first dimension, in which alone they may differ.
// `second` takes the buffer in slot s from element begins[s] on, where there is such a number.
device::Launch join_beside(const device::Launch& first, const device::Launch& second,
                           const std::vector<int64_t>& begins = {});
// Equally many groups, each of which does what its like in one launch after the other does: they
// may depend on that, and on no other group of these launches. Groups of one work-item; what one
// launch writes and another touches is of one type for both.
device::Launch join_after(const std::vector<device::Launch>& launches);

}  // namespace ballast::kernels
