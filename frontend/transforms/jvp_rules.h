// The rows of jvp that several families share. A primitive needs one only where the transpose of
// its vjp rule (frontend/transforms/jvp.cpp) is longer than the rule itself.
#pragma once

#include "frontend/program/primitive.h"

namespace ballast::jvp_rules {

// Linear in each of its float operands while the others are held: the op itself with one operand
// replaced by its tangent, summed over the operands that have one. Covers what has one operand.
std::vector<Tensor> multilinear(const JvpArgs& args);

// Linear in all of its float operands together: the op itself on their tangents.
std::vector<Tensor> linear(const JvpArgs& args);

}  // namespace ballast::jvp_rules
