// What the public ops are written with: one primitive applied to operands, at the caller's line.
#pragma once

#include "frontend/program/trace.h"
#include "frontend/tensor/operand.h"

#include <vector>

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

// Throws at the caller's line.
template <class... Args>
[[noreturn]] void refuse(const Where& where, fmt::format_string<Args...> format, Args&&... args) {
  fail(BALLAST_INVALID_ARGUMENT, "{} (at {})", fmt::format(format, std::forward<Args>(args)...),
       to_string(CallScope::resolve(where)));
}

// Negative axes count from the end; what is out of range stays as the user gave it, for the op to
// refuse.
inline int64_t from_start(int64_t axis, int64_t rank) {
  return axis < 0 && axis >= -rank ? axis + rank : axis;
}

// The order of axes that undoes this one.
inline std::vector<int64_t> inverse_of(const std::vector<int64_t>& perm) {
  std::vector<int64_t> inverse(perm.size());
  for (size_t i = 0; i < perm.size(); ++i) {
    inverse[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
  }
  return inverse;
}

// The axis from the front; throws where it is out of range.
inline int64_t checked_axis(const char* op, int64_t axis, int64_t rank, const Where& where) {
  const int64_t from_front = from_start(axis, rank);
  if (from_front < 0 || from_front >= rank) {
    refuse(where, "[{}] axis {} is out of range for rank {}", op, axis, rank);
  }
  return from_front;
}

}  // namespace ballast::ops
