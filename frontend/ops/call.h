// What the public ops are written with: one primitive applied to operands, at the caller's line.
#pragma once

#include "frontend/program/trace.h"
#include "frontend/tensor/operand.h"

namespace ballast::ops {

inline Tensor unary(const char* name, const Operand& x, const Attrs& attrs = {}) {
  return apply_primitive(name, {x.tensor()}, attrs, x.where())[0];
}

// The dtype that numbers take beside these operands.
inline DType common_dtype(const Operand& a, const Operand& b) {
  if (const Tensor* tensor = a.given()) return tensor->dtype();
  return b.given() ? b.given()->dtype() : DType::kF32;
}

inline Tensor binary(const char* name, const Operand& a, const Operand& b) {
  const DType dtype = common_dtype(a, b);
  std::vector<Tensor> inputs;
  inputs.reserve(2);  // no list: that would copy what it is given
  inputs.push_back(a.as(dtype));
  inputs.push_back(b.as(dtype));
  return std::move(apply_primitive(name, inputs, {}, a.where())[0]);
}

// Negative axes count from the end; what is out of range is left to the op to refuse.
inline int64_t from_start(int64_t axis, int64_t rank) { return axis < 0 ? axis + rank : axis; }

}  // namespace ballast::ops
