// The gradients of matmul ops. Names: g is the output's cotangent, y the output, x the first input.
#include "frontend/ops/ops.h"
#include "frontend/transforms/jvp_rules.h"
#include "frontend/transforms/vjp_rules.h"
#include "frontend/transforms/vmap_rules.h"

namespace ballast {

using namespace vjp_rules;

namespace {

Tensor as_rows(const Tensor& tensor) {
  Shape shape = tensor.shape();
  int64_t width = shape.back();
  shape.pop_back();
  return ops::reshape(tensor, {TensorType{tensor.dtype(), shape}.elements(), width});
}

// Leading dimensions over one matrix are rows like any other: one product instead of many and a
// sum.
std::vector<Tensor> rows_times_matrix(const VjpArgs& args, bool transpose_b) {
  const Tensor& b = args.inputs[1];
  Tensor a = as_rows(x(args)), rows = as_rows(g(args));
  Tensor da = ops::matmul(rows, b, false, !transpose_b);
  Tensor db = transpose_b ? ops::matmul(rows, a, true, false) : ops::matmul(a, rows, true, false);
  return {ops::reshape(da, x(args).shape()), db};
}

// The epilogue is set by a pass of the graph, after all transforms; ops::call can ask for it too.
void refuse_epilogue(const Attrs& attrs) {
  for (const auto& [name, value] : attrs) {
    const bool is_plain = name == "transpose_a" || name == "transpose_b" ||
                          value == AttrValue(int64_t{0}) || value == AttrValue(std::string("none"));
    if (is_plain) continue;
    fail(BALLAST_UNIMPLEMENTED,
         "[matmul] the op has no gradient with {}; the product and the ops after it have one (at "
         "{})",
         name, to_string(CallScope::resolve(Where::here())));
  }
}

std::vector<Tensor> matmul_jvp(const JvpArgs& args) {
  refuse_epilogue(args.attrs);
  return jvp_rules::multilinear(args);
}

std::vector<Tensor> matmul(const VjpArgs& args) {
  refuse_epilogue(args.attrs);
  bool transpose_a = int_attr(args.attrs, "transpose_a") != 0;
  bool transpose_b = int_attr(args.attrs, "transpose_b") != 0;
  const Tensor& a = x(args);
  const Tensor& b = args.inputs[1];
  if (!transpose_a && b.shape().size() == 2) return rows_times_matrix(args, transpose_b);
  Tensor da = transpose_a ? ops::matmul(b, g(args), transpose_b, true)
                          : ops::matmul(g(args), b, false, !transpose_b);
  Tensor db = transpose_b ? ops::matmul(g(args), a, true, transpose_a)
                          : ops::matmul(a, g(args), !transpose_a, false);
  return {unbroadcast(da, a.shape()), unbroadcast(db, b.shape())};
}

}  // namespace

std::vector<Primitive> matmul_primitives() {
  return {
      {"matmul", matmul, matmul_jvp, vmap_rules::matmul},
  };
}

}  // namespace ballast
