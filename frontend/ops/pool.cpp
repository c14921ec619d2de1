#include "frontend/ops/pool.h"

#include "frontend/ops/call.h"

namespace ballast::ops {}
