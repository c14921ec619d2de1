// Text form of a graph; parse(print(g)) gives g back, constants included.
//
//   ballast.graph 1
//   input %0 "x": f32[64, 784]
//   state %1 "fc.weight": f32[512, 784]
//   const %2: f32[] = 3c23d70a
//   %3 = matmul(%0, %1) {transpose_b = 1} : f32[64, 512] @ "net.cpp:12"
//   %4, %5 = ...
//   %6 = cond(%7, %3) : f32[64, 512] {
//     input %0 "x": f32[64, 512]
//     output %0
//   } {
//     ...
//   }
//   update %1 = %4
//   output %3
//
// Attributes equal to their default are left out. A constant's bytes are hexadecimal. Values of a
// region have numbers of their own.
#pragma once

#include "graph/graph.h"

#include <string>

namespace ballast::graph {

// Constants above `constant_limit` bytes are printed as "..." (for reading, not for parsing).
std::string print(const Graph& graph, size_t constant_limit = ~size_t{0});
// One attribute's value there. Equal for equal values only: -0.0 is not 0.0, and NaN is NaN.
std::string attr_text(const AttrValue& value);
// Throws kInvalidArgument naming the line and column.
Graph parse(const std::string& text);

}  // namespace ballast::graph
