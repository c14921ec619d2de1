// Random numbers.
#pragma once

#include "kernels/plan.h"

#include <string>
#include <vector>

namespace ballast::kernels {}  // namespace ballast::kernels
