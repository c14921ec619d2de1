// A tensor as people read it, in MindSpore's form:
//
//   Tensor(shape=[2, 2], dtype=Float32, value=
//   [[ 1.00000000e+00,  2.00000000e+00],
//    [ 3.00000000e+00,  4.00000000e+00]])
//
// Above 1000 elements the middle of every axis longer than 6 is left out.
#pragma once

#include "graph/op.h"

#include <string>

namespace ballast::graph {

std::string tensor_text(const TensorType& type, const uint8_t* bytes);

}  // namespace ballast::graph
