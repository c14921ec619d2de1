// Normalisations.
#pragma once

#include "frontend/operand.h"

#include <vector>

namespace ballast::ops {}  // namespace ballast::ops
