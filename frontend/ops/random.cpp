#include "frontend/ops/random.h"

#include "frontend/ops/call.h"

namespace ballast::ops {}
