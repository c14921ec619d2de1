#include "frontend/ops/conv.h"

#include "frontend/ops/call.h"

namespace ballast::ops {}
