#include "frontend/ops/attention.h"

#include "frontend/ops/call.h"

namespace ballast::ops {}
