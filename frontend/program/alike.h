// Whether two programs are the same but for the values they captured and the names of their
// variables: what was made of the one then serves the other.
#pragma once

#include "frontend/program/program.h"

namespace ballast {

// Types, primitives, attributes, bodies, numbers, parameters and the user's lines are compared.
bool are_alike(const Program& a, const Program& b);

}  // namespace ballast
