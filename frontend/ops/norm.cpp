#include "frontend/ops/norm.h"

#include "frontend/ops/call.h"

namespace ballast::ops {}
