// Dead code inside control flow: an equation with bodies, without the results nobody needs and
// without the operands, carries and equations that served only those. Other equations (whose bodies
// are for transforms) stay as they are.
#pragma once

#include "frontend/program/program.h"

#include <functional>

namespace ballast {

// `is_live`: whether an output is needed; at least one is.
Equation prune(const Equation& equation, const std::function<bool(const Var&)>& is_live);

}  // namespace ballast
