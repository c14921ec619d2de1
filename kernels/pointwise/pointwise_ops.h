// The table of pointwise ops (pointwise_ops.inc) without Halide: names, arities, type rules.
// Constant data; any thread.
#pragma once

#include "kernels/types.h"

#include <string>
#include <vector>

namespace ballast::kernels {

// Elements per explicit vector: the widest that OpenCL C has.
constexpr int kLanes = 16;

enum class PointwiseRule {
  kFloat,    // f32 -> f32
  kNumeric,  // all operands of one type, f32 or i32 -> the same
  kCompare,  // both of one type, f32 or i32 -> bool
  kLogical,  // bool -> bool
  kSelect,   // bool, then two of one type, f32 or i32 -> that type
  kCast,     // f32, i32, i64, u8, bool -> another of these
  kAny,      // any type -> the same
};

struct PointwiseOp {
  const char* name;
  int arity;
  PointwiseRule rule;
};

const PointwiseOp* find_pointwise(const std::string& name);  // nullptr if there is no such op
const std::vector<PointwiseOp>& pointwise_ops();

// Whether `op` takes operands of these types and gives `output`.
bool accepts(const PointwiseOp& op, const std::vector<DType>& inputs, DType output);

}  // namespace ballast::kernels
