#include "frontend/ops/matmul.h"

#include "frontend/ops/call.h"

namespace ballast::ops {

Tensor matmul(const Operand& a, const Operand& b, bool transpose_a, bool transpose_b) {
  return apply_primitive(
      "matmul", {a.tensor(), b.tensor()},
      {{"transpose_a", int64_t{transpose_a}}, {"transpose_b", int64_t{transpose_b}}}, a.where())[0];
}

}  // namespace ballast::ops
