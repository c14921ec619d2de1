// The per-kernel profile as a table for people.
#pragma once

#include "frontend/backend/backend.h"

#include <string>
#include <vector>

namespace ballast {

// Rows of drain_profile(), most expensive first; counts and times are divided by `steps`. Device
// time only: what the host spends between kernels is not in it.
std::string profile_table(const std::vector<ProfileRow>& rows, uint64_t steps);

}  // namespace ballast
