#include "frontend/ops/index.h"

#include "frontend/ops/call.h"

namespace ballast::ops {}
