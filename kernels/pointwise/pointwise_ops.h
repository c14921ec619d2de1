// The table of pointwise ops (pointwise_ops.inc) without Halide: names, arities, type rules.
// Constant data; any thread.
#pragma once

#include "kernels/recipe/lanes.h"
#include "kernels/types.h"

#include <string>
#include <vector>

namespace ballast::kernels {

enum class PointwiseRule {
  kFloat,    // f32, bf16, f16 -> the same
  kNumeric,  // all operands of one type, float as above, i32, i64 or u8 -> the same
  kInteger,  // all operands of one type, i32, i64 or u8 -> the same
  kTest,     // float as above -> bool
  kCompare,  // both of one type as above -> bool
  kLogical,  // bool -> bool
  kSelect,   // bool, then two of one type -> that type
  kCast,     // all but f64 -> another of these
  kAny,      // any type -> the same
};

struct PointwiseOp {
  const char* name;
  int arity;
  PointwiseRule rule;
};

const PointwiseOp* find_pointwise(const std::string& name);  // nullptr if there is no such op
const std::vector<PointwiseOp>& pointwise_ops();

// Whether `op` hands the bits of operand `input` on as they are.
bool moves_bits(const std::string& op, size_t input);

// Whether `op` takes operands of these types and gives `output`.
bool accepts(const PointwiseOp& op, const std::vector<DType>& inputs, DType output);

}  // namespace ballast::kernels
