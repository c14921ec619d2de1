// Launches of different kernels as one, each of whose groups does what a group of theirs did, bit
// for bit.
//
// Plain values; any thread. Texts are made once for the same kernels.
#pragma once

#include "kernels/plan/plan.h"

#include <cstdint>
#include <vector>

namespace ballast::kernels {

// For equally many work-items in a group. The groups of `second` come after those of `first` along
// the first dimension, in which alone they may differ. `second` takes the buffer in slot s from
// element begins[s] on, where there is such a number.
device::Launch join_beside(const device::Launch& first, const device::Launch& second,
                           const std::vector<int64_t>& begins = {});
// Equally many groups, each of which does what its like in one launch after the other does: they
// may depend on that, and on no other group of these launches. Groups of one work-item; what one
// launch writes and another touches is of one type for both.
device::Launch join_after(const std::vector<device::Launch>& launches);

}  // namespace ballast::kernels
