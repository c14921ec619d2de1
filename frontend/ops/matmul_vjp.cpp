// The gradients of matmul ops. Names: g is the output's cotangent, y the output, x the first input.
#include "frontend/ops.h"
#include "frontend/vjp_rules.h"

namespace ballast {

using namespace vjp_rules;

namespace {

// Leading dimensions are rows like any other.
Tensor as_rows(const Tensor& tensor) {
  Shape shape = tensor.shape();
  int64_t width = shape.back();
  shape.pop_back();
  return ops::reshape(tensor, {TensorType{tensor.dtype(), shape}.elements(), width});
}

std::vector<Tensor> matmul(const VjpArgs& args) {
  bool transpose_a = int_attr(args.attrs, "transpose_a") != 0;
  bool transpose_b = int_attr(args.attrs, "transpose_b") != 0;
  const Tensor& b = args.inputs[1];
  if (transpose_a) {
    const Tensor& a = x(args);
    Tensor da =
        transpose_b ? ops::matmul(b, g(args), true, true) : ops::matmul(b, g(args), false, true);
    Tensor db = transpose_b ? ops::matmul(g(args), a, true, true) : ops::matmul(a, g(args));
    return {da, db};
  }
  Tensor a = as_rows(x(args));
  Tensor rows = as_rows(g(args));
  Tensor da = ops::matmul(rows, b, false, !transpose_b);
  Tensor db = transpose_b ? ops::matmul(rows, a, true, false) : ops::matmul(a, rows, true, false);
  return {ops::reshape(da, x(args).shape()), db};
}

}  // namespace

std::vector<Primitive> matmul_primitives() {
  return {
      {"matmul", matmul},
  };
}

}  // namespace ballast
