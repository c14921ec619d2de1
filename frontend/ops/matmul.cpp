#include "frontend/ops/matmul.h"

#include "frontend/ops/call.h"

namespace ballast::ops {

namespace {

Tensor reshaped(const Tensor& x, const Shape& shape, const Operand& source) {
  return apply_primitive("reshape", {x}, {{"shape", shape}}, source.where())[0];
}

}  // namespace

Tensor matmul(const Operand& a, const Operand& b, bool transpose_a, bool transpose_b) {
  Tensor left = a.tensor(), right = b.tensor();
  const bool is_row = left.shape().size() == 1, is_column = right.shape().size() == 1;
  if (is_row) left = reshaped(left, {1, left.elements()}, a);
  if (is_column) right = reshaped(right, {right.elements(), 1}, b);
  Tensor product = apply_primitive("matmul", {left, right},
                                   {{"transpose_a", int64_t{transpose_a && !is_row}},
                                    {"transpose_b", int64_t{transpose_b && !is_column}}},
                                   a.where())[0];
  if (!is_row && !is_column) return product;
  Shape shape = product.shape();
  if (is_column) shape.pop_back();
  if (is_row) shape.erase(shape.end() - (is_column ? 1 : 2));
  return reshaped(product, shape, a);
}

}  // namespace ballast::ops
