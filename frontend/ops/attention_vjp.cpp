#include "frontend/vjp_rules.h"

namespace ballast {

std::vector<Primitive> attention_primitives() { return {}; }

}  // namespace ballast
